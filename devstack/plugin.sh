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

# DevStack plugin: installs the package where nova-scheduler, nova-api,
# watcher-decision-engine and Ceilometer's agents run, configures them with their
# own options, and runs tracon-engine.

_XTRACE_TRACON=$(set +o | grep xtrace)
set +o xtrace

TRACON_DIR=$DEST/tracon-watcher

function install_tracon {
    # Nova, Watcher and Ceilometer are there from source, so their extras are not asked for.
    if is_service_enabled tracon-engine; then
        setup_develop $TRACON_DIR engine,osc
    else
        setup_develop $TRACON_DIR
        sudo install -d -o $STACK_USER "$(dirname $TRACON_SNAPSHOT_FILE)"
    fi
}

# Where Nova and Watcher read the snapshot.
# tracon_configure_source conf_file
function tracon_configure_source {
    local conf_file=$1
    if is_service_enabled tracon-engine; then
        iniset $conf_file tracon snapshot_source engine
    else
        iniset $conf_file tracon snapshot_file $TRACON_SNAPSHOT_FILE
    fi
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
    # As large as our own, so that predicted harm outvotes no soft server group.
    iniset $NOVA_CONF filter_scheduler soft_affinity_weight_multiplier 40
    iniset $NOVA_CONF filter_scheduler soft_anti_affinity_weight_multiplier 40
    tracon_configure_source $NOVA_CONF
    iniset $NOVA_CONF tracon mode $TRACON_MODE
}

function _tracon_nova_default_filters {
    $PYTHON -c 'from nova.conf import CONF; print(",".join(CONF.filter_scheduler.enabled_filters))'
}

# Nova's versioned notifications, which the engine listens to.
function configure_tracon_notifications {
    local conf_file
    for conf_file in $NOVA_CONF $NOVA_CPU_CONF; do
        if [[ -r $conf_file ]]; then
            # Ceilometer wants the others as well.
            iniset $conf_file notifications notification_format both
            iniset $conf_file notifications notify_on_state_change vm_and_task_state
            iniset $conf_file oslo_messaging_notifications driver messagingv2
        fi
    done
}

function configure_tracon_watcher {
    # Goal, strategy and scoring engines are found by their entry points.
    tracon_configure_source $WATCHER_CONF
}

function configure_tracon_ceilometer {
    $PYTHON $TRACON_DIR/devstack/merge_ceilometer.py $TRACON_DIR/etc/ceilometer \
        $CEILOMETER_CONF_DIR
}

# Pages in Horizon; DevStack collects static files afterwards.
function configure_tracon_dashboard {
    ln -sf $TRACON_DIR/tracon_dashboard/enabled/_311*.py \
        $HORIZON_DIR/openstack_dashboard/local/enabled/
}

# Who shares an exchange of RabbitMQ has to declare it in the same way.
function tracon_configure_rabbit {
    local option value
    for option in amqp_durable_queues amqp_auto_delete rabbit_quorum_queue \
        rabbit_transient_quorum_queue rabbit_stream_fanout rabbit_login_method \
        ssl ssl_version ssl_ca_file ssl_cert_file ssl_key_file; do
        value=$(iniget $NOVA_CONF oslo_messaging_rabbit $option)
        if [[ -n $value ]]; then
            iniset $TRACON_CONF oslo_messaging_rabbit $option "$value"
        fi
    done
}

function configure_tracon_engine {
    sudo install -d -o $STACK_USER $TRACON_CONF_DIR
    rm -f $TRACON_CONF
    iniset $TRACON_CONF DEFAULT debug "$ENABLE_DEBUG_LOG_LEVEL"
    iniset_rpc_backend tracon $TRACON_CONF
    tracon_configure_rabbit
    # Without what DevStack appends for others: it would narrow the characters.
    local connection
    connection=$(database_connection_url tracon)
    iniset $TRACON_CONF database connection "${connection%%\?*}"
    configure_keystone_authtoken_middleware $TRACON_CONF tracon
    configure_keystoneauth $TRACON_CONF tracon service_auth
    iniset $TRACON_CONF service_auth valid_interfaces public
    iniset $TRACON_CONF service_auth region_name "$REGION_NAME"
    iniset $TRACON_CONF engine telemetry $TRACON_TELEMETRY
    iniset $TRACON_CONF engine default_host_type $TRACON_HOST_TYPE
    iniset $TRACON_CONF api port $TRACON_PORT
    setup_logging $TRACON_CONF
}

function create_tracon_accounts {
    create_service_user tracon admin
    local service
    service=$(get_or_create_service tracon interference "Interference between virtual machines")
    get_or_create_endpoint "$service" "$REGION_NAME" \
        "$SERVICE_PROTOCOL://$SERVICE_HOST:$TRACON_PORT"
}

function init_tracon_engine {
    recreate_database tracon
    $TRACON_BIN_DIR/tracon db upgrade --config-file $TRACON_CONF
}

function start_tracon_engine {
    run_process tracon-engine "$TRACON_BIN_DIR/tracon-engine --config-file $TRACON_CONF"
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
    if is_service_enabled horizon; then
        configure_tracon_dashboard
    fi
    if is_service_enabled ceilometer-acompute ceilometer-anotification; then
        configure_tracon_ceilometer
    fi
    if is_service_enabled tracon-engine; then
        configure_tracon_notifications
        configure_tracon_engine
        create_tracon_accounts
        init_tracon_engine
    fi
elif [[ "$1" == "stack" && "$2" == "extra" ]]; then
    # Nova and Gnocchi run by now.
    if is_service_enabled tracon-engine; then
        start_tracon_engine
    fi
elif [[ "$1" == "unstack" ]]; then
    stop_process tracon-engine
elif [[ "$1" == "clean" ]]; then
    rm -f $HORIZON_DIR/openstack_dashboard/local/enabled/_311*_interference*.py
    rm -f $TRACON_SNAPSHOT_FILE
    sudo rm -rf $TRACON_CONF_DIR
fi

$_XTRACE_TRACON
