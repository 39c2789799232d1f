# SPDX-License-Identifier: Apache-2.0
# Toolchain: 64-bit ARM from another machine, with Debian's cross compiler, libraries of that architecture beside the
# machine's own (dpkg --add-architecture arm64), and tests run by qemu. Debian cannot install SentencePiece for two
# architectures side by side, so its description is taken from the machine's own: rooms above the tokenizer compile, but
# do not link.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
file(GLOB own_descriptions /usr/lib/*-linux-gnu/pkgconfig)
list(PREPEND own_descriptions /usr/lib/aarch64-linux-gnu/pkgconfig /usr/share/pkgconfig)
list(JOIN own_descriptions ":" own_descriptions)
set(ENV{PKG_CONFIG_LIBDIR} "${own_descriptions}")
