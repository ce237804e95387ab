"""How a process takes its place among TensorFlow's; what does it is imported when it is asked for."""

from harness.protocol.channel import Channel
from harness.protocol.messages import Membership, Outcome, Request


class TensorFlowClusters:
    """TensorFlow's own: a worker learns of the others from TF_CONFIG or Slurm, a server carries out what is sent."""

    def join(self, member: Membership) -> None:
        """Before the runtime starts; HarnessError with the reason."""
        from harness.engines.tensorflow.membership import join

        join(member)

    def serve(self, request: Request, member: Membership, channel: Channel) -> Outcome:
        """A worker under a coordinator, or a parameter server."""
        from harness.engines.tensorflow.server import serve

        return serve(request, member, channel)
