#!/usr/bin/env bash
# A throw-away PostgreSQL cluster on a free loopback port, for the ledger's tests.
#
#   url=$(tests/postgres.sh start DIR)    make and start it in DIR (new or empty), print its URL
#   tests/postgres.sh stop DIR            stop it and remove DIR
#
# As root, the server runs as the user postgres; otherwise as whoever calls.
set -euo pipefail

die() { echo "postgres.sh: $*" >&2; exit 1; }

[ $# -eq 2 ] || die "usage: $0 start|stop DIR"
action=$1
[ "$action" = start ] && mkdir -p "$2"
[ -d "$2" ] || die "there is no folder $2"
directory=$(cd "$2" && pwd)
data=$directory/data

find_tools() {
    local candidate
    for candidate in "$(pg_config --bindir 2>/dev/null || true)" /usr/lib/postgresql/*/bin \
        /usr/local/opt/postgresql*/bin /opt/homebrew/opt/postgresql*/bin; do
        if [ -x "$candidate/initdb" ] && [ -x "$candidate/pg_ctl" ]; then
            echo "$candidate"
            return
        fi
    done
    die "no PostgreSQL server found; install one (Debian: apt-get install postgresql)"
}

as_server() {
    if [ "$(id -u)" -eq 0 ]; then
        (cd / && runuser -u postgres -- "$@")
    else
        "$@"
    fi
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

tools=$(find_tools)

case $action in
start)
    [ -z "$(ls -A "$directory")" ] || die "$directory is not empty"
    chmod 700 "$directory"
    if [ "$(id -u)" -eq 0 ]; then chown postgres "$directory"; fi
    password=$(python3 -c 'import secrets; print(secrets.token_hex(16))')
    (umask 077 && echo "$password" >"$directory/password")
    if [ "$(id -u)" -eq 0 ]; then chown postgres "$directory/password"; fi
    as_server "$tools/initdb" --pgdata="$data" --username=justitia --encoding=UTF8 --no-locale \
        --auth=scram-sha-256 --pwfile="$directory/password" --no-sync >"$directory/log" 2>&1 ||
        die "initdb failed: $(tail -n 3 "$directory/log")"
    for _ in 1 2 3 4 5; do # another program may take the port in between
        port=$(free_port)
        options="-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories= -c fsync=off"
        if as_server "$tools/pg_ctl" --pgdata="$data" --options="$options" --wait --timeout=60 \
            --log="$data/server.log" start >>"$directory/log" 2>&1; then
            echo "postgresql://justitia:$password@127.0.0.1:$port/postgres"
            exit 0
        fi
    done
    die "the server did not start: $(tail -n 5 "$data/server.log")"
    ;;
stop)
    [ -f "$data/PG_VERSION" ] || die "$directory holds no cluster"
    if [ -f "$data/postmaster.pid" ]; then
        as_server "$tools/pg_ctl" --pgdata="$data" --mode=immediate --wait stop >/dev/null
    fi
    rm -rf "$data" "$directory/log" "$directory/password"
    rmdir "$directory"
    ;;
*)
    die "usage: $0 start|stop DIR"
    ;;
esac
