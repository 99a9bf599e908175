#!/bin/sh
# A job that is started more often than it should run.
#
# Two lines of a crontab start it, and at the full hour both do:
#
#     */5 * * * *   /srv/report/cron.sh
#     0   * * * *   /srv/report/cron.sh
#
# Whoever comes second skips. The lock is kept for at least 30 s, so that a schedule that is a few seconds late, or a host
# whose clock is, does not run a quick job again. Anything worse than "somebody else has it" is an error, which cron mails.
#
# Run as it is, this prints the time: put your job in the place of `report`.
set -eu

if [ "${1-}" = work ]; then
    # This part runs under the lock. LOCKKEEPER_TOKEN rises with every run.
    echo "report of $(date '+%H:%M:%S'), token $LOCKKEEPER_TOKEN"
    exit 0
fi

# Cron's PATH is short: say where the program is, here or in the crontab.
PATH="$PATH:/usr/local/bin:${HOME:-}/.cargo/bin"

exec lockkeeper run nightly-report --no-wait --busy-exit 0 --at-least 30s --label cron.sh -- "$0" work
