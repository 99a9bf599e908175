#!/bin/sh
# Ours, sharing the lock, through the command line: `shared.sh URL NAME LEASE_MS OPTION…`, with --shared or --permits n/N
# for `lockkeeper run`. The program is in $LOCKKEEPER_PROGRAM. What it is told and says: ../README.md.
set -eu
url=$1 name=$2 lease_ms=$3
shift 3

# The command inside is in when it says so, and is out with the next order it reads; then `lockkeeper` releases.
hold() {
    if "$LOCKKEEPER_PROGRAM" --store "$url" run "$@" --lease "${lease_ms}ms" --wait 100s "$name" \
        -- sh -c 'echo held; read -r order; [ "$order" = release ]'; then
        echo "release: ok"
    else
        echo "release: lost ($?)"
    fi
}

hold "$@"
while read -r order; do
    if [ "$order" != take ]; then
        echo "an order that cannot be followed: $order" >&2
        exit 1
    fi
    hold "$@"
done
