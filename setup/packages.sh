# Installs distribution packages (Debian, Ubuntu). Sourced by ./dev.

build_packages="g++ cmake ninja-build ccache pkg-config nlohmann-json3-dev libfmt-dev libcli11-dev catch2
  ca-certificates python3 python3-venv"
format_packages="clang-format-14"
catch2_minimum=3.4

# Prints the packages of the list that are not installed, or too old.
missing_packages() {
  local name version
  for name; do
    version=$(dpkg-query --show --showformat='${db:Status-Status} ${Version}' "$name" 2>/dev/null) || version=
    case $version in
      "installed "*)
        [ "$name" != catch2 ] || dpkg --compare-versions "${version#installed }" ge $catch2_minimum || echo "$name"
        ;;
      *) echo "$name" ;;
    esac
  done
}

# What apt would install for a package.
candidate() { LC_ALL=C apt-cache policy "$1" | sed -n 's/^ *Candidate: //p'; }

# The configured source of the distribution's own suite, as deb822 text for another suite of the same archive.
# Knows both formats: *.sources (deb822) and the older one-line *.list.
source_for_suite() {
  local codename=$1 suite=$2
  { cat /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } | awk -v RS= -v codename="$codename" -v suite="$suite" '
    !done && /(^|\n)Types:[^\n]*deb([ \n]|$)/ && $0 ~ "(^|\n)Suites:[^\n]*[ :]" codename "([ \n]|$)" {
      n = split($0, line, "\n")
      for (i = 1; i <= n; i++) {
        if (line[i] ~ /^#/) continue
        if (line[i] ~ /^Suites:/) line[i] = "Suites: " suite
        if (line[i] ~ /^Components:/) line[i] = "Components: main"
        print line[i]
      }
      done = 1
    }' | grep . && return
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null || true; } | awk -v codename="$codename" -v suite="$suite" '
    $1 == "deb" {
      options = ""; i = 2
      if ($2 ~ /^\[/) { for (; i <= NF; i++) { options = options " " $i; if ($i ~ /\]$/) { i++; break } } }
      if ($(i + 1) != codename) next
      print "Types: deb\nURIs: " $i "\nSuites: " suite "\nComponents: main"
      gsub(/^ *\[ *| *\]$/, "", options)
      n = split(options, option, " ")
      for (k = 1; k <= n; k++) {
        split(option[k], part, "=")
        if (part[1] == "signed-by") print "Signed-By: " part[2]
        if (part[1] == "trusted") print "Trusted: " part[2]
      }
      exit
    }' | grep .
}

# Debian 12 itself has Catch2 2; its backports suite has 3. That suite installs nothing unasked by its own
# settings; the pin asks for Catch2 alone.
add_backports() {
  local codename suite text
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  suite=$codename-backports
  if ! apt-cache policy | grep -q "n=$suite,"; then
    text=$(source_for_suite "$codename" "$suite") || die "no configured package source has the suite $codename; add $suite by hand"
    $as_root tee /etc/apt/sources.list.d/mambatile-backports.sources >/dev/null <<<"$text"
  fi
  $as_root tee /etc/apt/preferences.d/mambatile-backports >/dev/null <<<"Package: catch2 libcatch2-dev
Pin: release n=$suite
Pin-Priority: 500"
}

# True where the suites configured now have no Catch2 that is new enough.
needs_backports() {
  local version
  version=$(candidate catch2)
  [ -z "$version" ] || [ "$version" = "(none)" ] || dpkg --compare-versions "$version" lt $catch2_minimum
}

# Installs what is missing of the packages named; says what to ask for where that takes rights we lack.
setup_packages() {
  [ -z "${MAMBATILE_SKIP_PACKAGES:-}" ] || return 0
  if ! command -v apt-get >/dev/null; then
    say "no apt-get here; the build needs what these Debian packages hold: $*"
    return 0
  fi
  local missing as_root=
  missing=$(missing_packages "$@" | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    as_root="sudo --non-interactive"
    sudo --non-interactive true 2>/dev/null || die "these packages are missing and installing them takes root: $missing
     Ask for:  apt-get install $missing
     (Debian 12: catch2 from its backports suite, version $catch2_minimum or newer.)
     MAMBATILE_SKIP_PACKAGES=1 goes on without them, for a machine that has these libraries by other means."
  fi
  say "installing $missing"
  logged "$deps/packages.log" $as_root apt-get update
  case " $missing " in
    *" catch2 "*)
      if needs_backports; then
        add_backports
        logged "$deps/packages.log" $as_root apt-get update
      fi
      ;;
  esac
  # shellcheck disable=SC2086 # the list is words
  logged "$deps/packages.log" $as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends $missing
}
