#!/bin/sh
# test.sh [ARGUMENTS OF go test]: runs the tests of this repository.
#
#   ./test.sh                        everything
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
# Tests that a backend cannot run are skipped and listed at the end. The race detector is on
# if there is a C compiler.
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

# If the arguments name no package, test all modules in go.work.
# The slowest packages begin first.
packages='./tests/... ./... ./cmd/latchkey ./examples ./examples/unittest ./latchkeyotel ./latchkeyotel/example ./latchkeyotel/tests/... ./latchkeycron'
for argument in "$@"; do
  case $argument in
  . | ./* | github.com/*) packages= ;;
  esac
done

# Results depend on the server, not on the files alone, so they are not cached.
# shellcheck disable=SC2086 # two words, or none
exec go run .ci/testrun.go $race -count=1 -timeout=30m $packages "$@"
