# Installs the packages given as arguments; needs root.
# Packages of servers start their services. A policy that answers 101 ("not allowed") prevents it; it is put in place for
# the time of the installation only. The machine's own policy, if it has one, is kept aside and put back, also when the
# installation fails or is interrupted; what an earlier run could not put back (kill -9) is put back first.
set -eu
policy=${LOCKKEEPER_POLICY_FILE:-/usr/sbin/policy-rc.d}
aside=$policy.lockkeeper-kept
none=$policy.lockkeeper-none

put_back() {
    if [ -e "$aside" ]; then
        mv -f "$aside" "$policy"
    elif [ -e "$none" ]; then
        rm -f "$policy" "$none"
    fi
}

put_back
trap put_back EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
if [ -e "$policy" ]; then
    cp -p "$policy" "$aside.part"
    mv "$aside.part" "$aside"
else
    : >"$none"
fi
printf '#!/bin/sh\nexit 101\n' >"$policy.lockkeeper-new"
chmod 755 "$policy.lockkeeper-new"
mv -f "$policy.lockkeeper-new" "$policy"

# Packages also enable their services for the next start of the machine; nobody asked for that either.
enabled() {
    find /etc/systemd/system -path '*.wants/*.service' -type l -exec basename {} \; 2>/dev/null | sort -u
}
before=$(enabled)

export DEBIAN_FRONTEND=noninteractive
bounded="-o Acquire::Retries=3 -o DPkg::Lock::Timeout=120"
# shellcheck disable=SC2086
timeout 300 apt-get $bounded -qq update
# shellcheck disable=SC2086
timeout 900 apt-get $bounded -qq -y --no-install-recommends install "$@"

for unit in $(enabled); do
    if ! printf '%s\n' "$before" | grep -qxF "$unit" && command -v systemctl >/dev/null; then
        systemctl disable "$unit" 2>/dev/null || echo "note: $unit will start with the machine" >&2
    fi
done
