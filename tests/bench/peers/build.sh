#!/usr/bin/env bash
# Fetches and builds ggml and llama.cpp, to be measured beside mambatile in one process.
#
#   tests/bench/peers/build.sh [--jobs N] [--only ggml|all] [--prefix DIR]
#
# The sources come inside the `llama-cpp-python` source package, fetched by name with pip from the
# package index that pip is configured for. The result lies in .deps/peers; peers-config.cmake there
# is what CMake reads (MAMBATILE_BENCH_GGML, MAMBATILE_BENCH_LLAMA). Nothing here is part of the
# library, of the default build or of the checks.
set -euo pipefail

package=llama-cpp-python==0.3.36
archive=llama_cpp_python-0.3.36.tar.gz
archive_sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
prefix=${MAMBATILE_DEPS_DIR:-$root/.deps}/peers
jobs=$(nproc)
only=all
while (($#)); do
  case $1 in
    --jobs) jobs=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    --prefix) prefix=$2; shift 2 ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
  esac
done
[[ $only == ggml || $only == all ]] || { echo "--only takes ggml or all, not $only" >&2; exit 2; }

mkdir -p "$prefix/download"
prefix=$(cd "$prefix" && pwd)

check_archive() { echo "$archive_sha256  $prefix/download/$archive" | sha256sum --check --quiet; }
if [[ ! -f $prefix/download/$archive ]]; then
  # pip builds the package's metadata to learn its version; that needs its build backend.
  [[ -x $prefix/venv/bin/pip ]] || python3 -m venv "$prefix/venv"
  "$prefix/venv/bin/pip" install --quiet 'scikit-build-core[pyproject]'
  "$prefix/venv/bin/pip" download --dest "$prefix/download" --no-deps --no-binary :all: \
    --no-build-isolation "$package"
fi
check_archive

source=$prefix/source/vendor/llama.cpp
if [[ ! -f $source/CMakeLists.txt ]]; then
  mkdir -p "$prefix/source"
  tar xzf "$prefix/download/$archive" -C "$prefix/source" --strip-components=1 \
    --wildcards '*/vendor/llama.cpp/*'
fi

flags=(
  -DCMAKE_BUILD_TYPE=Release
  -DBUILD_SHARED_LIBS=OFF
  -DGGML_NATIVE=ON
  -DGGML_OPENMP=ON
  -DGGML_CCACHE=OFF
  -DLLAMA_BUILD_COMMON=OFF
  -DLLAMA_BUILD_TESTS=OFF
  -DLLAMA_BUILD_TOOLS=OFF
  -DLLAMA_BUILD_EXAMPLES=OFF
  -DLLAMA_BUILD_SERVER=OFF
  -DLLAMA_BUILD_APP=OFF
  -DLLAMA_OPENSSL=OFF
)
generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
cmake -S "$source" -B "$prefix/build" "${generator[@]}" "${flags[@]}"
build() { cmake --build "$prefix/build" --parallel "$jobs" --target "$1"; }
build ggml

# The libraries in the order in which a static link needs them.
library() { find "$prefix/build" -name "lib$1.a" -print -quit; }
compiled_with=$(python3 - "$prefix/build/compile_commands.json" <<'PY'
import json, sys
for entry in json.load(open(sys.argv[1])):
    if entry["file"].endswith("ggml-cpu/ops.cpp"):
        words = entry["command"].split()
        print(" ".join(w for w in words if w.startswith(("-O", "-m", "-f", "-DGGML_USE", "-DNDEBUG"))))
PY
)
# As the configuration sees a path: relative to itself, so that the folder can be moved.
place() { printf '${CMAKE_CURRENT_LIST_DIR}%s' "${1#"$prefix"}"; }

cat >"$prefix/peers-config.cmake" <<CONFIG
# Written by tests/bench/peers/build.sh.
set(peers_package "$package")
set(peers_compiled_with "$compiled_with")
if(NOT TARGET peers::ggml)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  find_package(Threads REQUIRED)
  add_library(peers::ggml INTERFACE IMPORTED GLOBAL)
  target_include_directories(peers::ggml SYSTEM INTERFACE "$(place "$source/ggml/include")")
  target_link_libraries(peers::ggml INTERFACE
    "$(place "$(library ggml)")" "$(place "$(library ggml-cpu)")" "$(place "$(library ggml-base)")"
    OpenMP::OpenMP_CXX Threads::Threads \${CMAKE_DL_LIBS})
endif()
CONFIG
if [[ $only == all ]]; then
  build llama
  cat >>"$prefix/peers-config.cmake" <<CONFIG
if(NOT TARGET peers::llama)
  add_library(peers::llama INTERFACE IMPORTED GLOBAL)
  target_include_directories(peers::llama SYSTEM INTERFACE "$(place "$source/include")")
  target_link_libraries(peers::llama INTERFACE "$(place "$(library llama)")" peers::ggml)
endif()
CONFIG
fi
echo "ggml and llama.cpp from $package, configured with ${flags[*]}"
echo "ggml-cpu compiled with: $compiled_with"
echo "CMake finds them with -Dpeers_DIR=$prefix, or by itself in .deps/peers"
