#!/bin/bash
# top.sh: writes what `latchkey top` shows at 80 columns, while some programs hold locks and wait for them, as top.txt
# and top.svg; and the same with ten thousand more locks of five hundred clients, as top-many.txt and top-many.svg. It
# needs go, redis-server, redis-cli and tmux.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
redis-server --port 0 --unixsocket "$work/redis" --dir "$work" --save '' >"$work/log" &
server=$!
jobs=()
finish() {
  tmux -S "$work/tmux" kill-server 2>/dev/null || true
  kill "${jobs[@]}" 2>/dev/null || true
  wait "${jobs[@]}" 2>/dev/null || true
  kill $server && wait $server || true
  rm -rf "$work"
}
trap finish EXIT

go build -o "$work/latchkey" ../../cmd/latchkey
export LATCHKEY_REDIS=unix://$work/redis
until "$work/latchkey" check >/dev/null 2>&1; do sleep 0.1; done

holding() { # holding N COMMAND…: starts N programs that run a command of latchkey repeatedly
  local i
  for ((i = 0; i < $1; i++)); do
    (
      child=
      trap 'kill "$child" 2>/dev/null; exit' TERM
      while :; do
        "$work/latchkey" "${@:2}" >/dev/null 2>&1 &
        child=$!
        wait $child || true
      done
    ) &
    jobs+=($!)
  done
}
holding 4 run invoices:2026-11 -- sleep 0.7
holding 2 run orders:42 -- sleep 3
holding 1 run report:daily -- sleep 60
holding 3 sem run imports --permits 2 -- sleep 5
"$work/latchkey" latch set warehouse:ready 3 >/dev/null
sleep 2

tmux -S "$work/tmux" -f /dev/null new-session -d -x 80 -y 14 "'$work/latchkey' top --every 1s"
capture() { # capture NAME: writes what the terminal shows as NAME.txt and NAME.svg
  sleep 6
  tmux -S "$work/tmux" capture-pane -p >"$1.txt"
  tmux -S "$work/tmux" capture-pane -e -p >"$work/frame.0"
  go run svg.go "$1.svg" 80 "$work/frame.0"
  cat "$1.txt"
}
capture top

awk 'BEGIN {
  for (i = 0; i < 500; i++) printf "HSET latchkey_client:{%08x-0000-8000} label worker-%03d\r\n", i, i
  for (i = 0; i < 10000; i++) {
    printf "HSET order:%05d %08x-0000-8000-8000-000000000000:%d 1\r\n", i, i * 7 % 500, i
    printf "PEXPIRE order:%05d %d\r\n", i, 600000 + i * 7919 % 3000000
  }
}' | redis-cli -s "$work/redis" --pipe >/dev/null
tmux -S "$work/tmux" resize-window -x 80 -y 24
capture top-many
