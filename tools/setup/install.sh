#!/usr/bin/env bash
# Installs what building and testing need from the distribution's packages, and only what is missing.
# Nothing is asked of the network when everything is in.
#
# Usage: tools/setup/install.sh [build] [web] [fuzz] [tidy] [clients] [browser]
#   build  compiler, CMake, libraries, Rust, Python for the checks (the default)
#   web    and Node with npm, for the page that the server shows
#   fuzz   and clang 16 with its sanitizer runtime, for `make fuzz`
#   tidy   and clang-tidy 16 and clang-format 16, for `make tidy` and `make format`
#   clients  and Node with npm and venv, for `make test-clients`
#   browser  and Node with npm and Chromium, for `make test-web`
# Debian 12 and Ubuntu 24.04; as root, or with sudo.
set -euo pipefail

rust_minimum=1.87
boost_minimum=108100  # as BOOST_VERSION writes 1.81

# boost is libboost1.81-dev on Debian 12, whose libboost-dev is older, and libboost-dev elsewhere.
# libjpeg-dev stands for libjpeg62-turbo-dev on Debian and libjpeg-turbo8-dev on Ubuntu.
build_packages=(g++ cmake ninja-build pkg-config make git ccache
  libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libgtest-dev libgmock-dev
  libjpeg-dev libpng-dev zlib1g-dev libssl-dev libcurl4-openssl-dev libwebp-dev libgif-dev libhwy-dev boost
  python3 python3-pip)
fuzz_packages=(clang-16 libclang-rt-16-dev)
tidy_packages=(clang-tidy-16 clang-format-16)
web_packages=(nodejs npm)
client_packages=("${web_packages[@]}" python3-venv)
browser_packages=("${web_packages[@]}" chromium fonts-dejavu-core)

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# is_at_least 1.95.0 1.87
is_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

has_boost() {
  local version
  version=$(awk '/define BOOST_VERSION/{print $3}' /usr/include/boost/version.hpp 2>/dev/null || true)
  [ "${version:-0}" -ge "$boost_minimum" ]
}

boost_package() { if apt-cache show libboost1.81-dev >/dev/null 2>&1; then echo libboost1.81-dev; else echo libboost-dev; fi; }

# A command built by hand or installed some other way is as good as the package.
is_provided() {
  case $1 in
    g++) command -v g++ >/dev/null ;;
    cmake) command -v cmake >/dev/null && is_at_least "$(cmake --version | awk 'NR==1{print $3}')" 3.25 ;;
    ninja-build) command -v ninja >/dev/null ;;
    pkg-config) command -v pkg-config >/dev/null ;;
    make | git | ccache | python3) command -v "$1" >/dev/null ;;
    boost) has_boost ;;
    nodejs) command -v node >/dev/null ;;
    npm) command -v npm >/dev/null ;;
    chromium) command -v chromium >/dev/null ;;
    python3-venv) python3 -c 'import ensurepip, venv' >/dev/null 2>&1 ;;
    python3-pip) python3 -m pip --version >/dev/null 2>&1 ;;
    clang-16 | clang-tidy-16 | clang-format-16) command -v "$1" >/dev/null ;;
    *) return 1 ;;
  esac
}

# The same candidates as rust/text_ffi/CMakeLists.txt, which makes the choice for the build.
has_rust() {
  local cargo version
  for cargo in "$(command -v cargo || true)" "$HOME/.cargo/bin/cargo" /usr/bin/cargo /usr/bin/cargo-1.* \
    /usr/lib/rust-*/bin/cargo; do
    [ -x "$cargo" ] || continue
    version=$("$cargo" --version 2>/dev/null | awk '{print $2}')
    if [ -n "$version" ] && is_at_least "$version" "$rust_minimum"; then return 0; fi
  done
  return 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else
    command -v sudo >/dev/null || fail "packages are missing and this is neither root nor is there sudo"
    sudo "$@"
  fi
}

install_packages() {
  say "apt-get install $*"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o Dpkg::Use-Pty=0 "$@" >/dev/null || fail "apt-get could not install: $*"
}

# Debian 12 keeps a current Rust for its browsers in rustc-web and cargo-web; Ubuntu has versioned packages.
install_rust() {
  local version
  if apt-cache show cargo-web >/dev/null 2>&1; then
    install_packages rustc-web cargo-web
  else
    version=$(apt-cache search --names-only '^cargo-1\.[0-9]+$' | awk '{print $1}' | sed 's/^cargo-//' |
      sort -V | tail -n 1)
    if [ -z "$version" ] || ! is_at_least "$version" "$rust_minimum"; then
      fail "no Rust $rust_minimum or newer in the package lists; install rustc and cargo by other means"
    fi
    install_packages "rustc-$version" "cargo-$version"
  fi
  has_rust || fail "the Rust packages that apt offers are older than $rust_minimum"
}

packages=("${build_packages[@]}")
for group in "$@"; do
  case $group in
    build) ;;
    web) packages+=("${web_packages[@]}") ;;
    fuzz) packages+=("${fuzz_packages[@]}") ;;
    tidy) packages+=("${tidy_packages[@]}") ;;
    clients) packages+=("${client_packages[@]}") ;;
    browser) packages+=("${browser_packages[@]}") ;;
    *) fail "unknown group $group: build, web, fuzz, tidy, clients or browser" ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || is_provided "$package" || missing+=("$package")
done
rust_missing=no
has_rust || rust_missing=yes
if [ ${#missing[@]} = 0 ] && [ $rust_missing = no ]; then
  say "everything is in"
  exit 0
fi

command -v apt-get >/dev/null || fail "this is neither Debian nor Ubuntu; install by hand (docs/dependencies.md): ${missing[*]} rust>=$rust_minimum"
say "apt-get update"
as_root apt-get update -qq || fail "apt-get update failed: is there a network?"
for i in "${!missing[@]}"; do [ "${missing[$i]}" != boost ] || missing[i]=$(boost_package); done
[ ${#missing[@]} = 0 ] || install_packages "${missing[@]}"
has_boost || fail "the Boost that apt offers is older than 1.81"
[ $rust_missing = no ] || install_rust
say "everything is in"
