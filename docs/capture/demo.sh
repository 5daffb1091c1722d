#!/bin/bash
# demo.sh: writes what `latchkey demo` shows at 80 columns as demo.svg, and as text in demo.txt. It needs go and tmux.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
pane=(tmux -S "$work/tmux")
finish() {
  "${pane[@]}" kill-server 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

go build -o "$work/latchkey" ../../cmd/latchkey
now() { date +%s%3N; }
began=$(now)
"${pane[@]}" -f /dev/null new-session -d -x 80 -y 26 \
  "env -u LATCHKEY_REDIS -u NO_COLOR '$work/latchkey' demo; sleep 60"
until grep -q 'go get' "$work"/frame.* 2>/dev/null; do
  frame=$work/frame.$(printf %06d $(($(now) - began)))
  "${pane[@]}" capture-pane -e -p >"$frame"
  [ -n "$(tr -d '[:space:]' <"$frame")" ] || rm "$frame" # the demo has not begun
  [ $(($(now) - began)) -lt 60000 ] || { echo "the demo does not end" >&2; exit 1; }
  sleep 0.5
done
go run svg.go demo.svg 80 "$work"/frame.*
"${pane[@]}" capture-pane -p -S - | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' >demo.txt
cat demo.txt
