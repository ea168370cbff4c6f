# Builds Kokkos once into $deps/kokkos-FLAVOUR. Sourced by ./dev.

kokkos_version=4.5.01
kokkos_release_url="https://github.com/kokkos/kokkos/releases/download/$kokkos_version/kokkos-$kokkos_version.tar.gz"
kokkos_release_sha256=52d003ffbbe05f30c89966e4009c017efb1662b02b2b73190670d3418719564c
# The same tree travels inside a Python source package; used where the release cannot be reached.
kokkos_sdist=pycompadre==1.7.6
kokkos_sdist_sha256=c766ec4d445ce076069be4b8c51a23ffac4ee79ea949ca86446bfd8c299b154c

# Prints the CMake options of a flavour: openmp is what runs fast, threads what ThreadSanitizer understands
# (it cannot see the synchronisation inside GCC's OpenMP runtime and would report false races).
kokkos_options() {
  echo "-DKokkos_ENABLE_SERIAL=ON -DKokkos_ARCH_NATIVE=ON -DKokkos_ENABLE_DEPRECATED_CODE_4=OFF"
  echo "-DCMAKE_CXX_STANDARD=20 -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF"
  case $1 in
    openmp) echo "-DKokkos_ENABLE_OPENMP=ON" ;;
    threads) echo "-DKokkos_ENABLE_THREADS=ON -DCMAKE_CXX_FLAGS=-fsanitize=thread" ;;
  esac
}

# A build for the native CPU must not outlive its machine, nor its options or compiler.
kokkos_key() {
  echo "version $kokkos_version"
  echo "cpu $(cpu_model)"
  echo "compiler $(${CXX:-c++} --version | head -n 1)"
  kokkos_options "$1"
}

# Leaves the source tree in $1.
kokkos_fetch() {
  local into=$1 work=$1.fetch
  rm -rf "$into" "$work" && mkdir -p "$into" "$work"
  if [ -n "${MAMBATILE_KOKKOS_TARBALL:-}" ]; then
    echo "$kokkos_release_sha256  $MAMBATILE_KOKKOS_TARBALL" | sha256sum --check --quiet ||
      die "MAMBATILE_KOKKOS_TARBALL is not the release kokkos-$kokkos_version.tar.gz"
    tar -xzf "$MAMBATILE_KOKKOS_TARBALL" -C "$into" --strip-components=1
  elif download "$kokkos_release_url" "$kokkos_release_sha256" "$work/kokkos.tar.gz"; then
    tar -xzf "$work/kokkos.tar.gz" -C "$into" --strip-components=1
  else
    say "the Kokkos release cannot be reached; taking the same version from a Python source package"
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" --quiet install setuptools packaging wheel
    echo "$kokkos_sdist --hash=sha256:$kokkos_sdist_sha256" >"$work/requirements.txt"
    "$work/venv/bin/pip" --quiet download --no-deps --no-binary :all: --no-build-isolation --require-hashes \
      --dest "$work" --requirement "$work/requirements.txt"
    tar -xzf "$work"/pycompadre-*.tar.gz -C "$into" --strip-components=2 --wildcards '*/kokkos/*'
  fi
  rm -rf "$work"
}

setup_kokkos() {
  local flavour=$1 prefix=$deps/kokkos-$1 key
  key=$(kokkos_key "$flavour")
  [ "$(cat "$prefix/.key" 2>/dev/null)" = "$key" ] && return
  say "building Kokkos $kokkos_version ($flavour) into $prefix"
  local work=$deps/work-kokkos-$flavour
  kokkos_fetch "$work/source"
  # shellcheck disable=SC2046 # the options are words
  logged "$deps/kokkos-$flavour.log" cmake -S "$work/source" -B "$work/build" -G Ninja $(kokkos_options "$flavour") \
    -DCMAKE_INSTALL_PREFIX="$prefix"
  logged "$deps/kokkos-$flavour.log" cmake --build "$work/build" --parallel "$jobs"
  rm -rf "$prefix"
  logged "$deps/kokkos-$flavour.log" cmake --install "$work/build"
  rm -rf "$work"
  echo "$key" >"$prefix/.key"
}
