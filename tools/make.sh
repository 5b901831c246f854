#!/usr/bin/env bash
#  Licensed under the Apache License, Version 2.0 (the "License"); you may
#  not use this file except in compliance with the License. You may obtain
#  a copy of the License at
#
#       http://www.apache.org/licenses/LICENSE-2.0
#
#  Unless required by applicable law or agreed to in writing, software
#  distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#  WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#  License for the specific language governing permissions and limitations
#  under the License.
#
# Usage: tools/make.sh demo [arguments of tracon demo]
#        tools/make.sh cloud-demo [arguments of tracon cloud demo]
#        tools/make.sh test
#
# Installs tox and bindep into a cache; as root, the system packages that
# bindep.txt asks for; then runs tox. Environments are kept in TRACON_CACHE, or
# $XDG_CACHE_HOME/tracon-watcher, or ~/.cache/tracon-watcher, so that every
# clone finds them.

set -euo pipefail
cd "$(dirname "$0")/.."

cache=${TRACON_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/tracon-watcher}
checks=pep8,py3,lower-constraints,functional,docs

say() {
    echo "==> $*" >&2
}

fail() {
    echo "$*" >&2
    exit 1
}

find_python() {
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
                2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "Python 3.11, 3.12 or 3.13 is needed, and none of them is on the PATH"
}

# apt_install PACKAGE...: installs as root, otherwise says what is to be installed.
apt_install() {
    if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
        fail "Missing system packages; install them and try again:
    sudo apt-get install $*"
    fi
    say "Installing system packages: $*"
    export DEBIAN_FRONTEND=noninteractive
    if [[ -z ${apt_updated:-} ]]; then
        apt-get update -q
        apt_updated=yes
    fi
    apt-get install -q -y --no-install-recommends "$@"
}

make_tools() {
    local python
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        apt_install python3-venv
    fi
    # A venv whose Python has been upgraded or removed does not run any more.
    if ! "$tools/bin/python" -c '' 2>/dev/null; then
        say "Creating $tools"
        "$python" -m venv --clear "$tools"
    fi
    "$tools/bin/python" -m pip install -q -c upper-constraints.txt bindep tox
}

system_packages() {
    local missing
    if ! command -v dpkg >/dev/null; then
        say "Not a Debian or Ubuntu machine: bindep.txt names what the tests need"
        return
    fi
    missing=$("$tools/bin/bindep" -b "$@" || true)
    if [[ -n $missing ]]; then
        # shellcheck disable=SC2086
        apt_install $missing
    fi
}

tox() {
    "$tools/bin/tox" "$1" --workdir "$cache/tox" "${@:2}"
}

mkdir -p "$cache"
tools=$cache/tools

# Two clones share the environments, so they take turns.
exec 9>"$cache/lock"
if ! flock -n 9; then
    say "Another run uses $cache; waiting for it (set TRACON_CACHE to another directory not to)"
    flock 9
fi

# pbr asks git for the version; an unpacked archive has no git to ask.
if ! git rev-parse -q --verify HEAD >/dev/null 2>&1; then
    export PBR_VERSION=${PBR_VERSION:-0.0.1}
fi

case ${1:-} in
    demo)
        make_tools 9>&-
        system_packages 9>&-
        # `tox exec` would neither install this clone nor leave that of another one.
        tox run -q -e demo -- "${@:2}" 9>&-
        ;;
    cloud-demo)
        make_tools 9>&-
        system_packages test 9>&-
        # The environment of the functional tests has a whole cloud. It is made to be this clone's,
        # which `tox exec` alone would not do.
        tox run -q -e functional --notest 9>&-
        tox exec -q -e functional -- tracon cloud demo "${@:2}" 9>&-
        ;;
    test)
        make_tools 9>&-
        system_packages test 9>&-
        TRACON_COUNTS=$(mktemp -d)
        export TRACON_COUNTS
        trap 'rm -rf "$TRACON_COUNTS"' EXIT
        status=0
        tox run -e "$checks" 9>&- || status=$?
        echo
        "$tools/bin/python" tools/counts.py "$TRACON_COUNTS" || status=1
        exit "$status"
        ;;
    *)
        fail "Usage: tools/make.sh demo [arguments] | cloud-demo [arguments] | test"
        ;;
esac
