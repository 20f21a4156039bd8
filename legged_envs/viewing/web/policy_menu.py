"""Controls of the page that choose the policy: a list, a field for a file, checkpoints of a run."""

from pathlib import Path

from legged_envs.policy.policy import SHIPPED, Policy
from legged_envs.policy.snapshots import find_snapshots
from legged_envs.tables import shorten
from legged_envs.viewing.web.controls import Controls
from legged_envs.viewing.web.session import Session

FIRST_POLICY = "as begun"
"""Name of the policy that acts first."""
CHECKPOINT = "checkpoint"
"""Name of the slider of the policies of a run. Its right end is the newest one."""
FRAMES_PER_LOOK = 25
"""Number of frames from one look for new checkpoints to the next."""


class PolicyMenu:
    """Controls that change the policy of a session.

    Args:
        controls: Controls of the page.
        session: The session.
        folder: Folder below which policies can be loaded. None: they can be anywhere.
        run: Run folder whose checkpoints can be chosen. None: that of a policy that the page loads.
    """

    def __init__(
        self, controls: Controls, session: Session, folder: Path | None, run: Path | None = None
    ):
        self.policies: dict[str, Policy | Path] = {FIRST_POLICY: session.policy}
        """Policies, or their files or run folders, by their names in the list."""
        self.run = run
        """Run folder whose checkpoints can be chosen. None: there is none."""
        self._controls = controls
        self._session = session
        self._folder = folder
        self._acting = FIRST_POLICY
        self._follows_run = True
        self._snapshots: dict[int, Path] = {}
        self._num_looks = 0
        task_id = session.policy.task_id
        if task_id in SHIPPED:
            self.policies["shipped"] = SHIPPED[task_id]
        controls.add_dropdown("policy", tuple(self.policies))
        controls.add_slider(CHECKPOINT, low=1, high=1, step=1, value=1, visible=False)
        self._shown_update = controls.gui.add_markdown("", visible=False)
        controls.add_text("file or run")
        controls.add_button("load policy")

    def apply(self, changed: set[str]) -> None:
        """Change the policy as the controls ask for.

        Args:
            changed: Names of the controls that were changed.

        Raises:
            FileNotFoundError: If there is no such file. The present policy stays.
            ValueError: If a policy does not fit. The present policy stays.
        """
        values = self._controls.values
        if "policy" in changed:
            chosen = values["policy"]
            # The page shows the old policy until the new one is known to fit.
            self._controls.show("policy", self._acting)
            self._session.change_policy(self.policies[chosen])
            self._show(chosen)
            self._follows_run = False
        if "load policy" in changed:
            self._load(values["file or run"])
        if CHECKPOINT in changed and self._snapshots:
            self._change_checkpoint(int(values[CHECKPOINT]))
        if self._num_looks % FRAMES_PER_LOOK == 0:
            self._look_for_checkpoints()
        self._num_looks += 1

    def _load(self, text: str) -> None:
        found = self.find_policy(text)
        self._session.change_policy(found)
        self.policies[text] = found
        self._controls.handles["policy"].options = tuple(self.policies)
        self._show(text)
        self._follows_run = found.is_dir()
        if found.is_dir():
            self.run = found
            self._snapshots = {}
            self._num_looks = 0

    def _show(self, name: str) -> None:
        self._acting = name
        self._controls.show("policy", name)

    def _look_for_checkpoints(self) -> None:
        """Show the slider of checkpoints once there are two, and let its right end follow a run."""
        snapshots = {} if self.run is None else find_snapshots(self.run)
        if len(snapshots) < 2 or snapshots.keys() == self._snapshots.keys():
            return
        was_shown = bool(self._snapshots)
        was_newest = self._controls.values[CHECKPOINT] == len(self._snapshots)
        self._snapshots = snapshots
        newest = len(snapshots)
        self._controls.set_range(CHECKPOINT, 1, newest)
        if not was_shown:
            self._controls.show(CHECKPOINT, newest)
            # Unless somebody chose another policy, the newest one of the run acts now.
            if self._follows_run:
                self._show_update(newest)
        elif was_newest and self._follows_run:
            self._controls.show(CHECKPOINT, newest)
            self._change_checkpoint(newest)

    def _change_checkpoint(self, position: int) -> None:
        update = list(self._snapshots)[position - 1]
        self._session.change_policy(self._snapshots[update])
        self._follows_run = True
        self._show_update(position)

    def _show_update(self, position: int) -> None:
        update = list(self._snapshots)[position - 1]
        self._shown_update.content = (
            f"checkpoint {position} of {len(self._snapshots)}: update {update:,}"
        )
        self._shown_update.visible = True

    def find_policy(self, text: str) -> Path:
        """Return the path of a policy below the folder of policies.

        Raises:
            ValueError: If it is elsewhere. The message is the same whether or not the file exists.
        """
        if self._folder is None:
            return Path(text)
        try:
            path = Path(text).resolve()
        except (OSError, ValueError, RuntimeError):
            # The text is no path, such as one with a null byte: refuse it below as one outside.
            path = Path("/")
        # Links are followed first: one of them may lead out of the folder.
        if not path.is_relative_to(self._folder.resolve()):
            raise ValueError(
                f"the page loads policies below {str(self._folder)!r}, "
                f"got {shorten(text, 200)!r}: start it with --folder to use another folder"
            )
        return path
