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
# Usage: tools/fresh.sh [-s bookworm|trixie] [-o FOLDER] COMMAND...
#
# Runs a command in a clone of this repository's last commit, on a Debian that has nothing but git,
# make and python3: bookworm (Debian 12, Python 3.11; the default) or trixie (Debian 13, Python
# 3.13). What the command leaves in its home's folder `out` is copied to FOLDER.
#
# Mount and process namespaces are the command's own, the network is this machine's. The bare
# system is made once by mmdebstrap and kept in TRACON_CACHE (see make.sh). Needs root.

set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    sed -n '14,19s/^# \{0,1\}//p' tools/fresh.sh >&2
    exit 2
}

suite=bookworm
output=
while getopts s:o: option; do
    case $option in
        s) suite=$OPTARG ;;
        o) output=$(realpath "$OPTARG") ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[[ $# -gt 0 ]] || usage
if [[ $(id -u) -ne 0 ]]; then
    echo "fresh.sh: needs root, for a system and namespaces of its own" >&2
    exit 2
fi

cache=${TRACON_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/tracon-watcher}/fresh
bare=$cache/$suite.tar
mkdir -p "$cache"
# Two runs at once would fight for apt's lock, and for the file.
exec 8>"$cache/lock"
flock 8
if [[ ! -s $bare ]]; then
    if ! command -v mmdebstrap >/dev/null; then
        apt-get update -q >&2
        DEBIAN_FRONTEND=noninteractive \
            apt-get install -q -y --no-install-recommends mmdebstrap >&2
    fi
    echo "fresh.sh: making a bare $suite" >&2
    mmdebstrap --quiet --format=tar --variant=minbase \
        --include=ca-certificates,git,make,python3 "$suite" "$bare.part"
    mv "$bare.part" "$bare"
fi
exec 8>&-

# A folder of its own for each run; --one-file-system keeps rm out of what is still mounted.
system=$(mktemp -d "$cache/$suite.XXXXXX")
trap 'rm -rf --one-file-system "$system"' EXIT
tar -xf "$bare" -C "$system"

# Where names, certificates and packages come from is this machine's affair, everything else is not.
cp -L /etc/resolv.conf /etc/hosts "$system/etc/"
cp -a /usr/local/share/ca-certificates/. "$system/usr/local/share/ca-certificates/"
cp -L /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/"
if [[ -f /etc/pip.conf ]]; then
    cp -L /etc/pip.conf "$system/etc/"
fi
wanted='^(CI|PIP_(CERT|DEFAULT_TIMEOUT|INDEX_URL)|SSL_CERT_FILE|REQUESTS_CA_BUNDLE'
mapfile -t variables < <(env | grep -iE "$wanted|(https?|no)_proxy)=" || true)

git clone -q --no-hardlinks . "$system/root/tracon-watcher"
mkdir "$system/root/out"

status=0
# shellcheck disable=SC2016
unshare --mount --pid --fork --kill-child --propagation private bash -euc '
    system=$1
    shift
    mount --bind "$system" "$system"
    mount -t proc proc "$system/proc"
    mount --rbind /dev "$system/dev"
    mount -t tmpfs tmpfs "$system/tmp"
    mount -t tmpfs tmpfs "$system/run"
    exec chroot "$system" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 TERM=dumb \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
' fresh "$system" "${variables[@]}" /bin/sh -c 'cd ~/tracon-watcher && exec "$@"' sh "$@" \
    </dev/null || status=$?
if [[ -n $output ]]; then
    mkdir -p "$output"
    cp -a "$system/root/out/." "$output/"
fi
exit "$status"
