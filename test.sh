#!/bin/sh
# test.sh [ARGUMENTS OF go test]: runs the tests of this repository.
#
#   ./test.sh                        everything, with long tests in their short form
#   ./test.sh -short=false           everything in full
#   ./test.sh -run TestMutex -v      some of it
#   ./test.sh ./latchkeytest         one package
#
# The integration tests in tests/ use the first backend that is available:
#
#   a server   LATCHKEY_TEST_REDIS (a URL, such as redis://localhost:6379), or
#              redis-server or valkey-server in PATH, started for the run; as root
#              on Debian or Ubuntu, test.sh tries to install a missing server
#              (LATCHKEY_TEST_INSTALL=0: never)
#   a container of the image LATCHKEY_TEST_IMAGE, if Docker answers
#   embedded   an in-process server; nothing else is needed
#
# The tests in tests/interop also need Java and Maven. Those with redis-py and node-redlock need
# Python and Node with pip and npm. They skip if these are missing.
#
# LATCHKEY_TEST_SERVER names a server program to use instead of the one in PATH.
# LATCHKEY_TEST_BACKEND=server|container|embedded chooses a backend. Two more backends run only
# if they are chosen. They need Linux, and redis-server or valkey-server in PATH:
#
#   sentinel   a master with a replica, behind three Sentinels
#   cluster    three masters with a replica each
#
# Tests that a backend cannot run are skipped; -v shows why. The race detector is on if there is a
# C compiler.
#
# LATCHKEY_TEST_NOSKIP=1 makes a skipped test fail the run. LATCHKEY_TEST_UNSTEADY names a file: each
# failed test runs again alone, twice at most, unless more than ten have failed. The run then passes if
# each of them passes once, and the file gets the names of these unsteady tests.
set -eu
cd "$(dirname "$0")"

command -v go >/dev/null || { echo "test.sh: Go is not in PATH" >&2; exit 1; }

has() { command -v "$1" >/dev/null 2>&1; }
has_server() { [ -n "${LATCHKEY_TEST_SERVER-}" ] || has redis-server || has valkey-server; }

# install_server installs redis-server without its system service. If that fails,
# the tests do not fail.
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

# If the arguments name no package, test all modules in go.work. The slowest packages begin first.
packages=
format=pkgname-and-test-fails
for argument in "$@"; do
  shift
  case $argument in
  . | ./* | github.com/*) packages="$packages $argument" ;;
  *) set -- "$@" "$argument" ;;
  esac
  case $argument in -v | -v=true) format=standard-verbose ;; esac
done
if [ -z "$packages" ]; then
  packages='./tests/... ./... ./cmd/latchkey ./latchkeytest ./examples ./examples/unittest ./latchkeyotel ./latchkeyotel/example ./latchkeyotel/tests/... ./latchkeycron ./latchkeygoredis'
fi

gotestsum=$(cd .ci/tools && CGO_ENABLED=0 GOWORK=off go tool -n gotestsum)
events=$(mktemp)
report=$(mktemp)
trap 'rm -f "$events" "$report"' EXIT
trap 'exit 130' INT

rerun=
if [ -n "${LATCHKEY_TEST_UNSTEADY-}" ]; then
  left=$((10 - $(wc -l <"$LATCHKEY_TEST_UNSTEADY")))
  [ "$left" -le 0 ] || rerun="--rerun-fails=2 --rerun-fails-max-failures=$left --rerun-fails-run-root-test --rerun-fails-report=$report"
fi

# Results depend on the server, not on the files alone, so they are not cached. Most tests wait rather than compute, so
# more packages are tested at once than there are processors. The part lint of CI has go vet.
status=0
# shellcheck disable=SC2086 # some words, or none
"$gotestsum" --format $format --format-hide-empty-pkg --hide-summary=skipped --jsonfile "$events" $rerun \
  --packages "$packages" -- $race -vet=off -short -p=4 -count=1 -timeout=30m "$@" || status=$?

echo
sed -n 's/.*"Output":"rig: \(backend [^"\\]*\).*/\1/p' "$events" | sed 's/ on port [0-9]*//' | sort -u
leaked=$(sed -n 's/.*"Package":"\([^"]*\)".*"Output":"rig: \(the tests left [^"]*\)".*/\1: \2/p' "$events")
[ -z "$leaked" ] || printf '%b\n' "$leaked"
if [ -n "$rerun" ] && [ $status = 0 ]; then
  sed -n "s/: [0-9]* runs, [0-9]* failures\$//p" "$report" | sed "s|\(\.[A-Z][^/.]*\)/.*|\1|" | sort -u >>"$LATCHKEY_TEST_UNSTEADY"
  [ -z "$leaked" ] || printf '%s\n' "$leaked" | sed 's/: .*/ (goroutines)/' >>"$LATCHKEY_TEST_UNSTEADY"
fi
if [ "${LATCHKEY_TEST_NOSKIP-}" = 1 ] && grep '"Action":"skip".*"Test"' "$events"; then
  echo "FAIL: nothing may be skipped in this run"
  status=1
fi
exit $status
