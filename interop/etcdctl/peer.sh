#!/bin/sh
# `etcdctl lock`, as a peer of `cargo xtask interop`: `peer.sh URL NAME LEASE_MS`. What it is told and says: ../README.md.
# The surprise: it gives the command inside no input, so the orders come by another descriptor; and it does not say whether
# its key was still there, so this can only say `release: sent`.
set -eu
export ETCDCTL_API=3
if [ "$1" = --version ]; then
    etcdctl version | sed -n 's/^etcdctl version: */etcdctl /p'
    exit
fi
endpoint=${1#etcd://} name=$2 lease_ms=$3
# A lease of etcd is whole seconds.
ttl=$(((lease_ms + 999) / 1000))
exec 3<&0

# The command inside is in when it says so, and is out with the next order it reads; then `etcdctl` releases.
hold() {
    if etcdctl --endpoints "$endpoint" lock --ttl "$ttl" -- "$name" \
        sh -c 'echo held; read -r order <&3; [ "$order" = release ]'; then
        echo "release: sent"
    else
        echo "release: lost ($?)"
    fi
}

hold
while read -r order; do
    if [ "$order" != take ]; then
        echo "an order that cannot be followed: $order" >&2
        exit 1
    fi
    hold
done
