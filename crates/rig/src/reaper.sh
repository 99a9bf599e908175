# Arguments: pid, its start time, the signal to send first, and what to remove afterwards: its folder, other files.
# The owner holds the other end of standard input: a word dismisses us, end-of-file means the owner died.
# Reaping by pid alone could hit a stranger that got the same number, so the start time is compared each time.
pid=$1 start=$2 signal=$3
shift 3

alive() {
    stat=$(cat "/proc/$pid/stat" 2>/dev/null) || return 1
    # The command's name in parentheses may hold spaces: count fields from the last parenthesis, state first.
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    [ "$1" != Z ] && [ "${20}" = "$start" ]
}

read -r word && exit 0
if alive; then
    kill -"$signal" "$pid" 2>/dev/null
    kill -CONT "$pid" 2>/dev/null # a stopped process takes no other signal
    tries=0
    while alive && [ "$tries" -lt 50 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    if alive; then
        kill -KILL -"$pid" 2>/dev/null || kill -KILL "$pid" 2>/dev/null
        sleep 0.2
    fi
fi
rm -rf -- "$@"
