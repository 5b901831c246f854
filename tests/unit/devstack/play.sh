# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

# Plays DevStack for the plugin: iniset and its like write lines that a test can read, the rest says
# that it was called.

set -eu
record() { echo "$*" >> "$OUT/calls"; }
for name in echo_summary setup_develop sudo run_process stop_process recreate_database \
        create_service_user get_or_create_endpoint setup_logging; do
    eval "$name() { record $name \"\$@\"; }"
done
get_or_create_service() { record get_or_create_service "$@"; echo service-id; }
get_python_exec_prefix() { echo "$OUT/bin"; }
enable_service() { ENABLED="$ENABLED $1"; }
is_service_enabled() {
    local one
    for one in "$@"; do [[ " $ENABLED " == *" $one "* ]] && return 0; done
    return 1
}
iniset() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >> "$OUT/ini"; }
iniset_multiline() { local f=$1 s=$2 o=$3; shift 3; for v in "$@"; do iniset "$f" "$s" "$o" "$v"
    done; }
iniget() {
    case $3 in
    enabled_filters) echo "ComputeFilter,SameHostFilter" ;;
    rabbit_quorum_queue) echo True ;;
    esac
}
iniset_rpc_backend() { iniset "$2" DEFAULT transport_url rabbit://stackrabbit:secret@host:5672/; }
database_connection_url() { echo "mysql+pymysql://root:secret@127.0.0.1/$1?charset=utf8&plugin=x"; }
configure_keystoneauth() {
    iniset "$1" "$3" auth_type password
    iniset "$1" "$3" interface public
    iniset "$1" "$3" auth_url http://host/identity
    iniset "$1" "$3" username "$2"
    iniset "$1" "$3" password secret
    iniset "$1" "$3" user_domain_name Default
    iniset "$1" "$3" project_name service
    iniset "$1" "$3" project_domain_name Default
}
configure_keystone_authtoken_middleware() { configure_keystoneauth "$1" "$2" keystone_authtoken; }
DEST=$OUT; DATA_DIR=$OUT/data; STACK_USER=stack; NOVA_CONF=$OUT/nova.conf; PYTHON=true
NOVA_CPU_CONF=$OUT/nova-cpu.conf; WATCHER_CONF=$OUT/watcher.conf; ENABLE_DEBUG_LOG_LEVEL=False
CEILOMETER_CONF_DIR=$OUT/ceilometer; REGION_NAME=RegionOne; SERVICE_PROTOCOL=http
SERVICE_HOST=host; TRACON_CONF_DIR=$OUT/etc
HORIZON_DIR=$OUT/horizon
touch $NOVA_CONF
mkdir -p $HORIZON_DIR/openstack_dashboard/local/enabled
ln -s $PLUGIN/.. $OUT/tracon-watcher
mkdir "$OUT/bin"
printf '#!/bin/sh\necho tracon "$@" >> "%s/calls"\n' "$OUT" > "$OUT/bin/tracon"
chmod +x "$OUT/bin/tracon"
source $PLUGIN/settings
for one in $DISABLED; do ENABLED=" $ENABLED "; ENABLED=${ENABLED/ $one / }; done
for phase in "stack install" "stack post-config" "stack extra" unstack; do
    source $PLUGIN/plugin.sh $phase
done
