"""`voxgate engine`: prepares engines that are not bundled: imports weights, builds for a GPU, says what is there."""

import argparse
import sys
from pathlib import Path
from types import ModuleType

NAMES = ("chattts",)


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("engine", help="prepare an engine that needs weights of your own (docs/gpu.md)")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    described = {
        "import": "verify downloaded weights and measure what streaming them needs",
        "build": "build TensorRT engines of imported weights",
        "inspect": "list what has been measured and built",
        "verify": "check weights and built engines",
    }
    made = {action: actions.add_parser(action, help=text) for action, text in described.items()}
    for action, each in made.items():
        each.add_argument("name", choices=NAMES, help="the engine")
        each.add_argument("folder", type=Path, help="the directory of its weights")
        each.set_defaults(func=run, action=action)
    building = made["build"]
    building.add_argument("--target", default="current", help='compute capability like "8.9" (default: the GPU here)')
    building.add_argument("--precision", default="float16", choices=("float16", "bfloat16"))
    building.add_argument("--slots", type=int, default=16, help="rows of a batch (default: %(default)s)")
    building.add_argument("--capacity", type=int, default=1024, help="tokens of a slot (default: %(default)s)")
    building.add_argument("--int8", action="store_true", help="quantize the transformer's layers")


def run(args: argparse.Namespace) -> int:
    try:
        from ...synth.chattts import errors, workshop
    except ImportError as missing:
        return _complain(f"{missing.name} is not installed: pip install 'voxgate[chattts,gpu]'")
    try:
        return _ACTIONS[args.action](args, workshop)
    except errors.WeightsError as wrong:
        return _complain(*wrong.problems)
    except (errors.ChatTTSError, OSError, ValueError) as wrong:
        return _complain(str(wrong))


def _import(args: argparse.Namespace, workshop: ModuleType) -> int:
    from ...synth.chattts.shape import TRUE

    workshop.import_directory(args.folder, TRUE, print)
    return 0


def _build(args: argparse.Namespace, workshop: ModuleType) -> int:
    from ...synth.chattts.directory import read_manifest
    from ...synth.chattts.shape import TRUE
    from ...synth.chattts.weights import load

    if not 1 <= args.slots <= 1024 or not 128 <= args.capacity <= TRUE.positions:
        return _complain(f"slots are 1 to 1024, capacity is 128 to {TRUE.positions}")
    read_manifest(args.folder)
    order = workshop.Order(args.target, args.precision, args.slots, args.capacity, args.int8)
    device = workshop.gpu_name() if args.target == "current" else ""
    workshop.build_engines(args.folder, load(args.folder, TRUE), order, print, device)
    return 0


def _inspect(args: argparse.Namespace, workshop: ModuleType) -> int:
    from ...synth.chattts.directory import read_manifest

    manifest = read_manifest(args.folder)
    print(f"revision {manifest.revision}, look-ahead {manifest.look_ahead.least} to {manifest.look_ahead.most} steps")
    for kept in workshop.PlanCache(args.folder / workshop.PLANS).kept():
        sizes = "; ".join(
            " ".join(f"{axis} {low}-{high}" for axis, (low, _, high) in each.items()) for each in kept.profiles
        )
        size = f"{kept.bytes / 2**20:.0f} MiB"
        print(f"{kept.graph}  {kept.precision}  for {kept.target}  {size}  {kept.builder}  ({sizes})")
    return 0


def _verify(args: argparse.Namespace, workshop: ModuleType) -> int:
    problems = workshop.verify(args.folder, print)
    return _complain(*problems) if problems else 0


_ACTIONS = {"import": _import, "build": _build, "inspect": _inspect, "verify": _verify}


def _complain(*about: str) -> int:
    for each in about:
        print(f"voxgate engine: {each}", file=sys.stderr)
    return 1
