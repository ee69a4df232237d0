#!/bin/sh
# Installs the kernel library into a scratch folder and builds and runs an outside project against it.
# Arguments: cmake, build folder.
set -eu
cmake=$1 build=$2 cc=${CC:-cc}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --component kernels --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$cmake" -G Ninja -S "$here" -B "$work/cmake" -DCMAKE_C_COMPILER="$cc" \
  -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 &&
  "$cmake" --build "$work/cmake" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/cmake/consumer"
# The .pc file names the configured prefix; point it at the scratch one.
pc=$(dirname "$(find "$work/prefix" -name mx8-kernels.pc)")
flags=$(PKG_CONFIG_PATH="$pc" pkg-config --define-variable=prefix="$work/prefix" --cflags --libs mx8-kernels)
"$cc" -Wall -Wextra -Werror -o "$work/consumer" "$here/consumer.c" $flags -Wl,-rpath,"$(dirname "$pc")"
"$work/consumer"
