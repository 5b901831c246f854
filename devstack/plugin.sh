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

# DevStack plugin: installs the package where nova-scheduler, nova-api and
# watcher-decision-engine run, and configures them with their own options.

_XTRACE_TRACON=$(set +o | grep xtrace)
set +o xtrace

TRACON_DIR=$DEST/tracon-watcher

function install_tracon {
    # Without extras: DevStack has put Nova and Watcher there from source.
    setup_develop $TRACON_DIR
    sudo install -d -o $STACK_USER "$(dirname $TRACON_SNAPSHOT_FILE)"
}

function configure_tracon_nova {
    local enabled
    # Nova's own list, or what DevStack has made of it; ours stands last.
    enabled=$(iniget $NOVA_CONF filter_scheduler enabled_filters)
    enabled=${enabled:-$(_tracon_nova_default_filters)}
    enabled=${enabled//,InterferenceFilter/}
    iniset $NOVA_CONF filter_scheduler enabled_filters "$enabled,InterferenceFilter"
    iniset_multiline $NOVA_CONF filter_scheduler available_filters \
        nova.scheduler.filters.all_filters \
        nova_filters.interference_filter.InterferenceFilter
    iniset $NOVA_CONF filter_scheduler weight_classes \
        nova.scheduler.weights.all_weighers,nova_filters.interference_weigher.InterferenceWeigher
    iniset $NOVA_CONF tracon snapshot_file $TRACON_SNAPSHOT_FILE
    iniset $NOVA_CONF tracon mode $TRACON_MODE
}

function _tracon_nova_default_filters {
    $PYTHON -c 'from nova.conf import CONF; print(",".join(CONF.filter_scheduler.enabled_filters))'
}

function configure_tracon_watcher {
    # Goal, strategy and scoring engines are found by their entry points.
    iniset $WATCHER_CONF tracon snapshot_file $TRACON_SNAPSHOT_FILE
}

if [[ "$1" == "stack" && "$2" == "install" ]]; then
    echo_summary "Installing tracon-watcher"
    install_tracon
elif [[ "$1" == "stack" && "$2" == "post-config" ]]; then
    echo_summary "Configuring tracon-watcher"
    if is_service_enabled n-sch; then
        configure_tracon_nova
    fi
    if is_service_enabled watcher-decision-engine; then
        configure_tracon_watcher
    fi
elif [[ "$1" == "clean" ]]; then
    rm -f $TRACON_SNAPSHOT_FILE
fi

$_XTRACE_TRACON
