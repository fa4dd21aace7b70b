#!/usr/bin/env bash
# The rules of this house that no linter knows: error texts say what was being
# done and not that it failed, documents name only paths that exist.
set -euo pipefail
cd "$(dirname "$0")/.."
fail=0

# Error texts: "verb object: cause", without filler, in any string of a call.
# Fakes (packages named …test) repeat what other programs say.
if grep -rnE '(Errorf|errors\.New|[bB]ecause|trouble)\(.*"[^"]*\b(failed to|unable to|could not|error (while|when))\b[^"]*"' \
	--include='*.go' --exclude='*_test.go' --exclude-dir='*test' cmd internal pkg; then
	echo "houserules: error texts say what was being done, without 'failed to' and its kin" >&2
	fail=1
fi

# Every path that a document names in backquotes exists.
for doc in README.md CONTRIBUTING.md docs/*.md docs/adr/*.md; do
	[ -e "$doc" ] || continue
	for path in $(grep -oE '`(cmd|pkg|internal|lab|test|docs|configs|deploy|tools)/[A-Za-z0-9_./-]*`' "$doc" | tr -d '`' | sort -u); do
		case "$path" in lab/bin* | */*:*) continue ;; esac
		if [ ! -e "$path" ]; then
			echo "houserules: $doc names $path, which does not exist" >&2
			fail=1
		fi
	done
done
exit $fail
