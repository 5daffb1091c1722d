#!/bin/sh
# test.sh [ARGUMENTS OF go test]: runs the tests of this repository.
#
#   ./test.sh                        everything
#   ./test.sh -run TestMutex -v      some of it
#   ./test.sh ./latchkeytest         one package
#
# The integration tests in tests/ take the first backend that is there:
#
#   a server   LATCHKEY_TEST_REDIS (a URL, such as redis://localhost:6379), or
#              redis-server or valkey-server in PATH, started for the run; as root
#              on Debian or Ubuntu it is installed if that works
#              (LATCHKEY_TEST_INSTALL=0: never)
#   a container of the image LATCHKEY_TEST_IMAGE, if Docker answers
#   embedded   an in-process server; nothing else is needed
#
# Those in tests/interop need Java and Maven as well, and those beside redis-py and node-redlock need
# Python and Node with pip and npm; they skip without them.
#
# LATCHKEY_TEST_SERVER names the program of another server than the one in PATH.
# LATCHKEY_TEST_BACKEND=server|container|embedded forces one. Two more, which need
# redis-server or valkey-server in PATH (and Linux), have to be asked for:
#
#   sentinel   a master with a replica, by three Sentinels
#   cluster    three masters with a replica each
#
# What a backend cannot do is skipped, and said at the end. The race detector is on if
# a C compiler is there.
set -eu
cd "$(dirname "$0")"

command -v go >/dev/null || { echo "test.sh: Go is not in PATH" >&2; exit 1; }

has() { command -v "$1" >/dev/null 2>&1; }
has_server() { [ -n "${LATCHKEY_TEST_SERVER-}" ] || has redis-server || has valkey-server; }

# install_server brings redis-server without its system service; its failure is
# no failure of the tests.
install_server() {
  policy=/usr/sbin/policy-rc.d
  made=
  if [ ! -e $policy ]; then
    made=yes
    printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy || made=
  fi
  {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server
  } >/dev/null 2>&1 </dev/null || true
  [ -z "$made" ] || rm -f $policy
}

if [ -z "${LATCHKEY_TEST_REDIS-}" ] && ! has_server; then
  case ${LATCHKEY_TEST_BACKEND:-server} in
  server | sentinel | cluster)
    if [ "${LATCHKEY_TEST_INSTALL:-1}" != 0 ] && has apt-get && [ "$(id -u)" = 0 ]; then
      echo "test.sh: no redis-server in PATH, installing it"
      (install_server)
      has_server || echo "test.sh: it could not be installed"
    fi
    ;;
  esac
fi

race=
if go build -race runtime/cgo runtime/race >/dev/null 2>&1; then
  race=-race
else
  echo "test.sh: no C compiler (or no race detector for this platform): running without -race"
fi

# Without a package among the arguments: all of all modules in go.work.
# What takes longest begins first.
packages='./tests/... ./... ./cmd/latchkey ./examples ./examples/unittest ./latchkeyotel ./latchkeyotel/example ./latchkeyotel/tests/... ./latchkeycron'
for argument in "$@"; do
  case $argument in
  . | ./* | github.com/*) packages= ;;
  esac
done

# A result against a server is no result of the files alone: nothing is cached.
# shellcheck disable=SC2086 # two words, or none
exec go run .ci/testrun.go $race -count=1 -timeout=30m $packages "$@"
