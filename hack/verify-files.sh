#!/usr/bin/env bash
# Checks that Go files are formatted and that "make generate" changes nothing. It compares the files before and after rather
# than with git: changes not yet committed do not matter, and neither does a checkout without git. Generated files that were
# out of date are right when this has failed: look at them and commit them.
set -euo pipefail
cd "$(dirname "$0")/.."

files() { find . \( -name .git -o -name node_modules -o -path ./bin \) -prune -o -type f "$@"; }

gofmt="$("${GO:-go}" env GOROOT)/bin/gofmt"
unformatted=$(files -name '*.go' -exec "$gofmt" -l {} +)
if [[ -n $unformatted ]]; then
  printf 'not formatted, run "make fmt":\n%s\n' "$unformatted" >&2
  exit 1
fi

sums() { files -exec cksum {} + | LC_ALL=C sort -k3; }

before=$(sums)
${MAKE:-make} --no-print-directory generate
after=$(sums)
if [[ $before != "$after" ]]; then
  echo '"make generate" changed files (< before, > after); look at them and commit them:' >&2
  diff <(echo "$before") <(echo "$after") | grep '^[<>]' >&2 || true
  exit 1
fi
