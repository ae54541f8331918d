#!/usr/bin/env bash
# Makes sure that axe-core, which audits pages for accessibility, is in bin/axe, in the version that the tests are written for.
# npm brings it; where there is no npm it installs Debian's as root or by a sudo that asks nothing. Anywhere else it says what to
# do and fails.
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

as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo -n "$@"; fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$work/log" 2>&1
}

good() { head -c 200 "$1/package/axe.min.js" 2>/dev/null | grep -qF "axe v$version"; }

if good "$here"; then exit 0; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v npm >/dev/null; then
  command -v apt-get >/dev/null || explain "there is neither npm nor apt-get"
  say "installing the package npm by apt-get, which brings axe-core"
  apt update || true # one broken source does not matter as long as the package can be installed
  apt install -y --no-install-recommends npm || { tail -n 5 "$work/log" >&2; explain "apt-get cannot install npm"; }
fi
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
