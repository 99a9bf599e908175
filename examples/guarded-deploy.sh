#!/bin/sh
# A deploy that never runs twice at a time, and whose steps carry the token of the lock.
#
#     examples/guarded-deploy.sh [VERSION]
#
# Whoever comes second waits up to ten minutes and sees who deploys. If this program is killed, or the lock is lost, the
# steps are ended before the next deploy can begin. What they have changed until then stays changed: that is what the
# token is for. Run as it is, the "server" is a folder below /tmp that refuses a deploy with an older token.
set -eu

version="${1:-1.0}"
server="${DEPLOY_TARGET:-${TMPDIR:-/tmp}/lockkeeper-example-server}"

# What the server does with a request: it remembers the greatest token, and refuses smaller ones. A real one does this
# in the same transaction as the change.
receive() {
    seen=$(cat "$server/token" 2>/dev/null || echo 0)
    if [ "$1" -lt "$seen" ]; then
        echo "the server has seen token $seen, and refuses $1" >&2
        return 1
    fi
    echo "$1" >"$server/token"
    echo "$2" >"$server/$3"
}

if [ "${2-}" = under-the-lock ]; then
    mkdir -p "$server"
    receive "$LOCKKEEPER_TOKEN" "$version" database
    echo "the database is at $version"
    receive "$LOCKKEEPER_TOKEN" "$version" program
    echo "the program is at $version, deployed with token $LOCKKEEPER_TOKEN"
    exit 0
fi

PATH="$PATH:/usr/local/bin:${HOME:-}/.cargo/bin"
exec lockkeeper run deploy --wait 10m --note "version $version" -- "$0" "$version" under-the-lock
