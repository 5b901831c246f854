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
#        tools/make.sh tenant-demo [arguments of tracon tenant demo]
#        tools/make.sh test [parts of the checks, see parts.py]
#        tools/make.sh test-all [parts of the checks]
#
# Installs tox into a cache; as root, the system packages of bindep.txt that are missing; then runs
# tox. Each step is a line with the time that is left; what it prints goes to a log, which is named
# where a step fails. Environments and logs are kept in TRACON_CACHE, or
# $XDG_CACHE_HOME/tracon-watcher, or ~/.cache/tracon-watcher, so that every clone finds them.

set -euo pipefail
cd "$(dirname "$0")/.."

cache=${TRACON_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/tracon-watcher}
tools=$cache/tools
work=${1:-}
log=$cache/log/$work.log
quick=(unit watcher scheduler)

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

# step PLACE SECONDS AFTER TITLE COMMAND...: runs one step; seconds are those of a usual machine.
step() {
    "$python" tools/step.py --log "$log" --place "$1" --seconds "$2" --after "$3" "$4" \
        -- "${@:5}" 9>&-
}

# need PACKAGE...: fails without root, and says what to install.
need() {
    if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
        fail "Missing system packages; install them and try again:
    sudo apt-get install $*"
    fi
}

apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    apt-get install -q -y --no-install-recommends "$@"
}

make_tools() {
    # A venv whose Python has been upgraded or removed does not run any more.
    if ! "$tools/bin/python" -c '' 2>/dev/null; then
        "$python" -m venv --clear "$tools"
    fi
    "$tools/bin/python" -m pip install -q -c upper-constraints.txt bindep tox
}

# For step.py, which runs commands and not functions.
case $work in
    --apt-install) apt_install "${@:2}"; exit ;;
    --make-tools) python=$(find_python); make_tools; exit ;;
esac

# prepare PLACES AFTER [BINDEP-PROFILE]: the first two steps of every work.
prepare() {
    local missing
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        need python3-venv
        step "1/$1" 15 "$(($2 + 10))" 'Installing the system package python3-venv' \
            tools/make.sh --apt-install python3-venv
    fi
    step "1/$1" 10 "$2" 'Installing tox' tools/make.sh --make-tools
    if [[ -z ${3:-} ]]; then
        return
    fi
    if ! command -v dpkg >/dev/null; then
        say "Not a Debian or Ubuntu machine: bindep.txt names what the tests need"
        return
    fi
    missing=$("$tools/bin/bindep" -b "$3" || true)
    if [[ -n $missing ]]; then
        # shellcheck disable=SC2086
        need $missing
        # shellcheck disable=SC2086
        step "2/$1" "$4" "$2" "Installing $(wc -w <<<"$missing") system packages" \
            tools/make.sh --apt-install $missing
    fi
}

tox() {
    "$tools/bin/tox" "$1" --workdir "$cache/tox" "${@:2}" 9>&-
}

# environment PLACE SECONDS AFTER NAME TITLE: makes an environment of tox, and installs this clone.
environment() {
    step "$1" "$2" "$3" "$5" "$tools/bin/tox" run --workdir "$cache/tox" -e "$4" --notest
}

# check PART...: runs parts of the checks.
check() {
    local needs profile base bases seconds
    seconds=$((120 * ($# ? $# : 17)))
    needs=$("$python" tools/parts.py --needs "$@")
    read -r profile bases <<<"$needs"
    prepare 4 "$seconds" "$profile" 150
    for base in $bases; do
        environment 3/4 90 "$seconds" "$base" "Installing the environment $base with pip"
    done
    say "[4/4] The checks"
    "$python" tools/parts.py --tox "$tools/bin/tox --workdir $cache/tox" "$@" 9>&-
}

case $work in
    demo | cloud-demo | tenant-demo | test | test-all) ;;
    *) fail "Usage: tools/make.sh demo | cloud-demo | tenant-demo [arguments] | test | test-all [parts]" ;;
esac

mkdir -p "$cache/log"
: >"$log"
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

python=$(find_python)
case $work in
    demo)
        prepare 3 260
        environment 2/3 40 220 demo 'Installing Nova, Watcher and this package with pip'
        say '[3/3] The demonstration'
        tox exec -qq -e demo -- tracon demo "${@:2}"
        ;;
    cloud-demo)
        prepare 4 400 test 150
        # The environment of the functional tests has a whole cloud. `tox exec` alone would not
        # install this clone.
        environment 3/4 90 300 functional 'Installing a whole OpenStack with pip'
        say '[4/4] The cloud'
        tox exec -qq -e functional -- tracon cloud demo "${@:2}"
        ;;
    tenant-demo)
        prepare 4 360 tenant 20
        environment 3/4 40 330 tenant-demo 'Installing scikit-learn, matplotlib and this package with pip'
        say '[4/4] The demonstration'
        tox exec -qq -e tenant-demo -- tracon tenant demo "${@:2}"
        ;;
    test)
        if [[ $# -eq 1 ]]; then
            set -- test "${quick[@]}"
        fi
        check "${@:2}"
        ;;
    test-all) check "${@:2}" ;;
esac
