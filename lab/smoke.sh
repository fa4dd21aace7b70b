#!/usr/bin/env bash
# One end-to-end pass over the lab: start it, change a setting per instance by SQL, run the real br with two and with
# four threads, kill the lab, start it again on its data. It prints how long the backups took beside what the formula
# says; only exit codes decide, because a busy machine is slow for reasons of its own.
set -euo pipefail
cd "$(dirname "$0")"

hosts=3 per_host=2 size_mib=$((200 * 1024)) replicas=2 rate=360
dir=$(mktemp -d)
lab_pid=

finish() {
	[ -z "$lab_pid" ] || kill "$lab_pid" 2>/dev/null || true
	wait || true
	rm -rf "$dir"
}
trap finish EXIT

up() {
	bin/lab up --dir "$dir" "$@" &
	lab_pid=$!
	until [ -e "$dir/lab.json" ]; do
		kill -0 "$lab_pid" # it ended: stop here
		sleep 0.2
	done
}

ctl() { bin/lab ctl --dir "$dir" "$@"; }

instances() { ctl sql "SELECT instance FROM information_schema.cluster_info WHERE type = 'tikv'" | sed '/^$/d'; }
pd() { grep -A1 '"pd_endpoints"' "$dir/lab.json" | grep -o '127[^"]*'; }

backup() {
	local threads=$1 begin took
	for instance in $(instances); do
		ctl sql "SET CONFIG '$instance' \`backup.num-threads\` = $threads"
	done
	sleep 3 # the soft limit follows at the stand-ins' next tick
	begin=$(date +%s%N)
	bin/br backup full --pd "$(pd)" --storage "local://$dir/backups/t$threads" --log-file "$dir/log/br-t$threads.log" \
		--concurrency 16 --compression lz4 --checksum=false
	took=$((($(date +%s%N) - begin) / 1000000))
	echo "smoke: $threads threads: br took $took ms, formula $((size_mib * 1000 / replicas / (rate * threads * hosts * per_host))) ms"
	grep -h "Backup Ranges Completed" "$dir/log/br-t$threads.log" | grep -o 'take=[^]]*' | sed 's/^/smoke: of which the ranges /'
}

up --hosts $hosts --tikv-per-host $per_host --cores 48 --replicas $replicas --size ${size_mib}MiB
backup 2
backup 4

echo "smoke: killing the lab"
kill -9 "$lab_pid"
wait "$lab_pid" || true
sleep 1
if pgrep -f "$dir" >/dev/null; then
	echo "smoke: children outlived the lab" >&2
	exit 1
fi

rm -f "$dir/lab.json" # only to see the new one come
up
ctl sql "SELECT COUNT(*) FROM lab.t001" "SHOW CONFIG WHERE type = 'tikv' AND name = 'backup.num-threads'"
echo "smoke: ok"
