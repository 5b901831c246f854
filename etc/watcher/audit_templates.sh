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
# Usage: audit_templates.sh [AGGREGATE...]
#
# Makes audit templates of Watcher's, as the administrator whose credentials the environment has:
# "interference" for the whole cloud and "interference-AGGREGATE" for each host aggregate that is
# named. Templates that exist stay as they are.

set -euo pipefail

make() {
    if openstack optimize audittemplate show "$1" -f value -c UUID >/dev/null 2>&1; then
        echo "$1 exists"
    else
        openstack optimize audittemplate create "$1" interference --strategy tracon_interference \
            --description "Ends interference between VMs: $2" "${@:3}" -f value -c UUID >/dev/null
        echo "$1 made"
    fi
}

scope=$(mktemp --suffix .yaml)
trap 'rm -f "$scope"' EXIT
make interference 'the whole cloud'
for aggregate in "$@"; do
    printf -- '- compute:\n  - host_aggregates:\n    - name: "%s"\n' "$aggregate" >"$scope"
    make "interference-$aggregate" "the host aggregate $aggregate" --scope "$scope"
done
