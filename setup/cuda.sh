# Assembles a CUDA toolkit from Python wheels in $deps/cuda. Sourced by ./dev.
# One release throughout: the packages do not check each other's versions. cuBLASLt is an older one on
# purpose, so that what is linked against it runs on every driver that serves CUDA 13.

cuda_packages="nvidia-cuda-nvcc==13.4.92 nvidia-cuda-crt==13.4.92 nvidia-nvvm==13.4.92 nvidia-cuda-tileiras==13.4.92
  nvidia-cuda-runtime==13.4.92 nvidia-cuda-cuobjdump==13.4.92 nvidia-cuda-nvdisasm==13.4.92
  nvidia-cuda-cccl==13.3.4.3.1 nvidia-cublas==13.0.2.14"

setup_cuda() {
  local prefix=$deps/cuda work=$deps/work-cuda log=$deps/cuda.log
  [ "$(cat "$prefix/.key" 2>/dev/null)" != "$cuda_packages" ] || return 0
  say "installing CUDA 13.4 into $prefix (about 600 MB to download)"
  rm -rf "$work" && mkdir -p "$work"
  : >"$log"
  logged "$log" python3 -m venv "$work/venv"
  # shellcheck disable=SC2086 # the list is words
  logged "$log" "$work/venv/bin/pip" install --no-deps --no-compile --target "$work/site" $cuda_packages
  rm -rf "$prefix"
  mv "$work/site/nvidia/cu13" "$prefix"
  # Wheels hold versioned libraries only, and linkers look for the plain name. Of cuBLAS only cuBLASLt is used.
  rm -f "$prefix"/lib/libcublas.so.* "$prefix"/lib/libnvblas.so.*
  (cd "$prefix/lib" && for library in *.so.*; do ln -sf "$library" "${library%%.so.*}.so"; done)
  rm -rf "$work"
  echo "$cuda_packages" >"$prefix/.key"
}
