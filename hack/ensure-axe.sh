#!/usr/bin/env bash
# Makes sure that axe-core, which audits pages for accessibility, is in bin/axe, in the version that the tests are written for.
# npm brings it (hack/ensure-npm.sh). Where it cannot, this says what to do and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

version=4.14.1
here=bin/axe

say() { echo "ensure-axe: $*" >&2; }

explain() {
  say "no axe-core $version: $1."
  say "Install npm and try again, or unpack axe-core $version into $here, so that $here/package/axe.min.js is there"
  exit 1
}

good() { head -c 200 "$1/package/axe.min.js" 2>/dev/null | grep -qF "axe v$version"; }

if good "$here"; then exit 0; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
hack/ensure-npm.sh || explain "there is no npm"
say "taking axe-core $version by npm into $here"
if ! (cd "$work" && npm pack --silent "axe-core@$version") </dev/null >>"$work/log" 2>&1; then
  tail -n 5 "$work/log" >&2
  explain "npm cannot bring it"
fi
tar -xzf "$work/axe-core-$version.tgz" -C "$work" package/axe.min.js package/LICENSE
good "$work" || explain "what npm brought is another"
mkdir -p "$here"
rm -rf "$here/package"
mv "$work/package" "$here"
