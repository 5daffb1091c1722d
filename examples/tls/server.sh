#!/bin/sh
# server.sh DIR PORT: makes certificates and a password in DIR, and runs a Redis in the foreground that wants
# both. The certificates are for a try-out on this machine: they end after a day, and the key of the authority
# lies beside them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:?usage: server.sh DIR PORT}
port=${2:?usage: server.sh DIR PORT}
for program in openssl redis-server; do
  command -v "$program" >/dev/null || { echo "server.sh: $program is not in PATH" >&2; exit 1; }
done
umask 077
mkdir -p "$dir"
cd "$dir"

# certificate NAME EXTENSION: a key, and a certificate that the authority has signed.
certificate() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" 2>openssl.log
  echo "$2" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 1 -extfile "$1.ext" -out "$1.crt" 2>openssl.log
}
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -days 1 \
  -subj "/CN=example authority" 2>openssl.log
certificate server 'subjectAltName=DNS:localhost,IP:127.0.0.1'
certificate client 'extendedKeyUsage=clientAuth'

openssl rand -hex 32 >password
sed "s/SECRET/$(cat password)/" "$here/users.acl" >users.acl
exec redis-server "$here/redis.conf" --dir "$PWD" --tls-port "$port"
