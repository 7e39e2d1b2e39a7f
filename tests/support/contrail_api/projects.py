"""Projects: each has an application policy set of its own."""

import uuid

from tests.support.contrail_api.behaviour import Behaviour
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.stored import Stored, common_properties

_NAME = "default-application-policy-set"


class Projects(Behaviour):
    """Creates the application policy set as child and reference."""

    def created(self, stored: Stored) -> None:
        kind = KINDS["application-policy-set"]
        policies = Stored(kind, str(uuid.uuid4()), (*stored.fq_name, _NAME), (stored.kind.name, stored.uuid))
        policies.properties = common_properties(policies.uuid, {}, _NAME)
        self.database.write(policies)
        self.database.refer(stored, kind.name, policies.uuid, None)
