#!/usr/bin/env bash
# Makes sure that there is npm, with Node.js 18 or newer: it brings axe-core and what the plugins of consoles are built
# with. Where there is none it installs Debian's packages as root or by a sudo that asks nothing. Anywhere else it says
# what to do and fails.
set -euo pipefail

oldest=18

say() { echo "ensure-npm: $*" >&2; }

good() { command -v npm >/dev/null && [[ $(node --version 2>/dev/null) =~ ^v([0-9]+)\. && ${BASH_REMATCH[1]} -ge $oldest ]]; }

explain() {
  say "there is no npm with Node.js $oldest or newer, and $1: install them, and try again"
  exit 1
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo -n "$@"; fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1
}

if good; then exit 0; fi

command -v apt-get >/dev/null || explain "there is no apt-get"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
say "installing the package npm by apt-get"
apt update || true # one broken source does not matter as long as the package can be installed
if ! apt install -y --no-install-recommends npm; then
  tail -n 5 "$log" >&2
  explain "apt-get cannot install it"
fi
good || explain "what apt-get installs is $(node --version 2>/dev/null || echo nothing that runs)"
