"""A safe `pose`: what players write is shown and never evaluated.

Evennia's own `pose` parses the text as a template. So `pose $space(99999999)` blocks the whole
server for minutes, and `pose {x}` ends in a traceback.
"""

from evennia.commands.default.general import CmdPose as DefaultCmdPose


class CmdPose(DefaultCmdPose):
    """
    Show everybody what you do

    Usage:
      pose <what you do>
      pose's <what you do>

    Example:
      pose is standing by the wall, smiling.
       -> others will see:
      Tom is standing by the wall, smiling.

    Your name is put before what you write.
    """

    def func(self) -> None:
        """Show the pose to the room.

        The text is the value of a constant template, because values are not parsed.
        """
        if not self.args:
            self.msg("What do you want to do?")
            return
        self.caller.location.msg_contents(
            text=("{posed}", {"type": "pose"}),
            from_obj=self.caller,
            mapping={"posed": f"{self.caller.name}{self.args}"},
        )
