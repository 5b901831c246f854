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

import logging

try:
    import hypothesis
    from hypothesis.internal.conjecture import providers
except ImportError:
    # Some environments have none, and no tests that need it.
    pass
else:
    # No test is timed: machines are busy. Each run tries the same examples, and keeps none for
    # the next.
    hypothesis.settings.register_profile(
        'tracon', deadline=None, derandomize=True, database=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow])
    hypothesis.settings.load_profile('tracon')
    # It would take some values out of whatever modules of ours a worker has loaded so far, so
    # that examples depended on the tests that came before.
    providers.is_local_module_file = lambda path: False

# Without any handler logging prints to stderr, and a test that provokes a
# warning looks like one that fails.
logging.getLogger().addHandler(logging.NullHandler())
