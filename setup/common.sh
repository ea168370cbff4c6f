# Small helpers of ./dev. Sourced.

say() { printf '== %s\n' "$*" >&2; }
die() {
  printf 'dev: %s\n' "$*" >&2
  exit 1
}

# Runs a command quietly; on failure shows the end of its log.
logged() {
  local log=$1
  shift
  "$@" >>"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    die "failed: $* (log: $log)"
  }
}

# download URL SHA256 FILE: true when the file was fetched and its hash is right.
download() {
  cmake -DURL="$1" -DSHA256="$2" -DFILE="$3" -P "$root/setup/download.cmake" >/dev/null 2>&1
}

cpu_model() { sed -n '/^model name\|^flags/s/.*: //p' /proc/cpuinfo | sort -u | sha256sum | cut -c1-16; }
