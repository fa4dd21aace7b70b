#!/usr/bin/env bash
# One real backup, from plan to record, on a cluster of three hosts that is
# started for it and gone afterwards. `make demo` builds what it needs.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/brctl-demo.XXXXXX")
lab_pid=
finish() {
	if [ -n "$lab_pid" ]; then
		kill -INT "$lab_pid" 2>/dev/null || true
		wait "$lab_pid" 2>/dev/null || true
	fi
	if [ -n "${KEEP:-}" ]; then
		say "Kept: $dir"
	else
		rm -rf "$dir"
	fi
}
trap finish EXIT
trap 'exit 130' INT TERM

say "1. Start a cluster: 3 hosts, 6 TiKV stand-ins, the real PD, TiDB and br"
lab/bin/lab up --dir "$dir" --hosts 3 --tikv-per-host 2 --cores 48 --size 300GiB &
lab_pid=$!
for _ in $(seq 600); do
	[ -e "$dir/lab.json" ] && break
	kill -0 "$lab_pid" 2>/dev/null || { echo "demo: the lab did not start; see $dir/log" >&2; exit 1; }
	sleep 0.2
done
[ -e "$dir/lab.json" ] || { echo "demo: the lab is not ready after two minutes; see $dir/log" >&2; exit 1; }
ctl() { lab/bin/lab ctl --dir "$dir" "$@"; }
threads() { ctl settings | grep -F num-threads; }

say "   backup.num-threads before (store, instance)"
threads

say "2. Plan the backup from the live cluster (changes nothing)"
bin/brctl plan -c "$dir/brctl.yaml" nightly

say "3. Run it"
code=0
bin/brctl run-now -c "$dir/brctl.yaml" nightly || code=$?

say "4. backup.num-threads afterwards, and every change that the TiKV stand-ins saw"
threads
ctl events | grep -F 'backup.num-threads'

say "5. Where the files are (removed now; KEEP=1 make demo keeps them)"
find "$dir/backups" -maxdepth 4 -name backupmeta -exec ls -l {} \;
ls -l "$dir/state" "$dir/state/log/br" "$dir/state/journal"

say "Done: brctl ended with exit code $code"
exit "$code"
