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

"""InterferenceWeigher: prefers hosts with less predicted harm."""

from nova.scheduler import weights

from nova_filters import worker


class InterferenceWeigher(weights.BaseHostWeigher):
    """Weights from 0 (endless harm) to 1 (none); see :mod:`nova_filters.scheduling_result`."""

    # With these set, Nova does not stretch each request's weights from 0 to 1, which would make
    # a difference of 1 % weigh as much as one of ten times.
    minval = 0.0
    maxval = 1.0

    def __init__(self):
        self._worker = worker.Worker()
        self._multiplier = 1.0

    def weight_multiplier(self, host_state):
        """Return ``[tracon] weight_multiplier``, read when the weights were made."""
        return self._multiplier

    def weigh_objects(self, weighed_obj_list, weight_properties):
        """Return a weight for each host."""
        return worker.guarded(lambda: self._weigh(weighed_obj_list, weight_properties),
                              [0.0] * len(weighed_obj_list))

    def _weigh(self, weighed, spec_obj):
        judge = (worker.latest() or self._worker).judge()
        self._multiplier = judge.options.weight_multiplier
        # This weigher is the last one, so that weights so far are the sums of all others.
        return judge.weights([one.obj for one in weighed], spec_obj,
                             [one.weight for one in weighed])

    def _weigh_object(self, obj, weight_properties):
        return self.weigh_objects([weights.WeighedObject(obj, 0.0)], weight_properties)[0]
