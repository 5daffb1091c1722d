#!/bin/bash
# top.sh: writes what `latchkey top` shows, as text and as SVG, while some programs hold locks and wait for them: top-60,
# top and top-200 are its list at 60, 80 and 200 columns, top-question the question before a lock is forced, top-down the
# list while the server does not answer, and top-many the list with ten thousand more locks of five hundred clients. It
# needs go, redis-server, redis-cli and tmux.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
redis-server --port 0 --unixsocket "$work/redis" --dir "$work" --save '' >"$work/log" &
server=$!
jobs=()
finish() {
  kill -CONT $server
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
for i in 1 2 3 4 5 6; do holding 1 run invoices:2026-11 --label payments-7d9f8b6c5-x2x4$i:1 --note "invoice 8$i" -- sleep 0.7; done
holding 2 run orders:42 --label web-1:4242 -- sleep 3
holding 1 run report:daily --label batch-3:1187 -- sleep 60
holding 3 sem run imports --permits 2 --label batch-3:1187 -- sleep 5
"$work/latchkey" latch set warehouse:ready 3 >/dev/null
sleep 2

pane=(tmux -S "$work/tmux")
"${pane[@]}" -f /dev/null new-session -d -x 80 -y 14 "'$work/latchkey' top --every 1s"
capture() { # capture NAME COLUMNS LINES SECONDS: writes what the terminal shows after some seconds as NAME.txt and NAME.svg
  "${pane[@]}" resize-window -x "$2" -y "$3"
  sleep "$4"
  "${pane[@]}" capture-pane -p >"$1.txt"
  "${pane[@]}" capture-pane -e -p >"$work/frame.0"
  go run svg.go "$1.svg" "$2" "$work/frame.0"
  cat "$1.txt"
}
capture top-60 60 12 6
capture top 80 12 3
capture top-200 200 12 3
"${pane[@]}" send-keys f
capture top-question 60 12 1
"${pane[@]}" send-keys n
sleep 1
"${pane[@]}" send-keys Up # the notice goes
kill -STOP $server
capture top-down 80 12 6
kill -CONT $server

awk 'BEGIN {
  for (i = 0; i < 500; i++) printf "HSET latchkey_client:{%08x-0000-8000} label worker-%03d\r\n", i, i
  for (i = 0; i < 10000; i++) {
    printf "HSET order:%05d %08x-0000-8000-8000-000000000000:%d 1\r\n", i, i * 7 % 500, i
    printf "PEXPIRE order:%05d %d\r\n", i, 600000 + i * 7919 % 3000000
  }
}' | redis-cli -s "$work/redis" --pipe >/dev/null
capture top-many 80 24 6
