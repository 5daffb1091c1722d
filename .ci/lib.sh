# shellcheck shell=bash
# What the scripts in .ci/parts share. They run in the root of the repository. $work is a folder that is removed
# at the end.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# All parts but the tests with the race detector share what is compiled with the part clone, which has no C compiler.
export CGO_ENABLED=0

# step TITLE COMMAND…: runs one step of a part.
step() {
  local began=$SECONDS
  echo
  echo "-- $1"
  "${@:2}"
  echo "-- $1: $((SECONDS - began)) s"
}

# note TEXT…: prints a note, also at the end of .ci/run.
note() { echo "note: $*" | tee -a "${LATCHKEY_CI_NOTES:-/dev/null}"; }

has() { command -v "$1" >/dev/null 2>&1; }

# tool PACKAGE VERSION installs a Go program and prints its path.
tool() {
  GOBIN=$work/bin go install "$1@$2" >&2
  echo "$work/bin/${1##*/}"
}

# turn N prints a number below N, another one after each commit: what is too much for each run takes turns.
turn() { echo $(($(git rev-list --count HEAD) % $1)); }

# share N prints the pattern of one of N shares of the integration tests.
share() {
  grep -hoE '^func Test\w+' tests/*_test.go | cut -d ' ' -f 2 | sort | awk -v n="$1" -v turn="$(turn "$1")" 'NR % n == turn' |
    paste -sd '|' | sed 's/.*/^(&)$/'
}

# tested BACKEND ARGUMENTS…: runs tests, with the race detector if there is a C compiler.
tested() {
  env -u CGO_ENABLED LATCHKEY_TEST_BACKEND="$1" LATCHKEY_TEST_INSTALL=0 ./test.sh "${@:2}"
}
