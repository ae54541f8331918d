#!/usr/bin/env bash
# Makes sure that an Alertmanager as distributions ship it, 0.25 or newer, and its amtool are in bin/debian: the templates of deploy/alertmanager
# must be good for an old one, too. It takes the programs out of Debian's or Ubuntu's package without installing it, so that no service starts
# and nothing outside of bin changes. EVICTRAIL_ALERTMANAGER may name another one, with amtool beside it; anywhere else it says what to do and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

oldest=0.25
here=bin/debian/alertmanager

say() { echo "ensure-alertmanager: $*" >&2; }

# good reports whether the program is an Alertmanager that is new enough, and has an amtool beside it.
good() {
  local version
  version=$("$1" --version 2>&1 | sed -nE 's/^(prometheus-)?alertmanager, version ([0-9]+\.[0-9]+).*/\2/p')
  [[ -n $version && $(printf '%s\n' "$oldest" "$version" | sort -V | head -n 1) == "$oldest" ]] || return 1
  "$(dirname "$1")/amtool" --version >/dev/null 2>&1
}

explain() {
  say "no alertmanager, $oldest or newer, with amtool beside it: $1."
  say "Both are in the package prometheus-alertmanager of Debian and Ubuntu and in every release of Alertmanager: get one from there and set"
  say "EVICTRAIL_ALERTMANAGER to the path of alertmanager"
  exit 1
}

if [[ -n ${EVICTRAIL_ALERTMANAGER:-} ]]; then
  if good "$EVICTRAIL_ALERTMANAGER"; then exit 0; fi
  explain "EVICTRAIL_ALERTMANAGER=$EVICTRAIL_ALERTMANAGER is none"
fi
if good "$here" 2>/dev/null; then exit 0; fi

command -v apt-get >/dev/null || explain "there is no apt-get here"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

download() { (cd "$work" && apt-get download prometheus-alertmanager) </dev/null >>"$work/log" 2>&1; }

as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo -n "$@"; fi
}

say "taking alertmanager and amtool out of the package prometheus-alertmanager, into bin/debian"
if ! download; then
  as_root apt-get -o DPkg::Lock::Timeout=300 update </dev/null >>"$work/log" 2>&1 || true # one broken source does not matter
  download || { tail -n 5 "$work/log" >&2; explain "apt-get cannot download the package prometheus-alertmanager"; }
fi
dpkg-deb -x "$work"/prometheus-alertmanager_*.deb "$work/package"

# Debian's program opens its own templates in a folder of the system, where they are not. It is made to look below the folder in which it is
# started, by a path of the same length.
there=/usr/share/prometheus/alertmanager
beside=$(printf '%-*s' "${#there}" alertmanager.d | tr ' ' /)
rm -rf "$here" "$here.d"
mkdir -p bin/debian
mv "$work/package$there" "$here.d"
LC_ALL=C sed "s#$there#$beside#g" "$work/package/usr/bin/prometheus-alertmanager" >"$here.d/alertmanager"
mv "$work/package/usr/bin/amtool" bin/debian
cat >"$here" <<'WRAPPER'
#!/bin/sh
# Written by hack/ensure-alertmanager.sh: the program, with its templates beside it. Paths of its flags must be absolute.
cd "$(dirname "$(readlink -f "$0")")" && exec ./alertmanager.d/alertmanager "$@"
WRAPPER
chmod 755 "$here" "$here.d/alertmanager"
good "$here" || explain "the one of this system is older, or does not run"
