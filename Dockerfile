# The image of the command line. goreleaser builds it, from binaries that it has compiled (.goreleaser.yaml).
#
#   docker run --rm -e LATCHKEY_REDIS=redis://redis:6379 ghcr.io/latchkey-go/latchkey ls
#
# "latchkey run" starts commands, and there are none in here: copy the program into an image that has them.
#
#   COPY --from=ghcr.io/latchkey-go/latchkey:1.2.3 /usr/bin/latchkey /usr/bin/latchkey
FROM gcr.io/distroless/static-debian12:nonroot
ARG TARGETPLATFORM
COPY $TARGETPLATFORM/latchkey /usr/bin/latchkey
ENTRYPOINT ["/usr/bin/latchkey"]
CMD ["help"]
