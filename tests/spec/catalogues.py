"""The names that matrices of tests are made of."""

from harness.spec import Catalogue, CrossDeviceOpTraits, DeviceTraits, StrategyTraits

CATALOGUE = Catalogue(
    devices={
        name: DeviceTraits(name, "", on_processors=name == "virtual-cpu") for name in ("virtual-cpu", "gpu", "tpu")
    },
    strategies={
        "none": StrategyTraits("none", "", max_replicas=1),
        "one_device": StrategyTraits("one_device", "", max_replicas=1),
        "mirrored": StrategyTraits("mirrored", "", takes_cross_device_op=True, takes_own_op=True),
        "workers": StrategyTraits("workers", "", takes_cross_device_op=True, multi_worker=True),
        "served": StrategyTraits("served", "", multi_worker=True, parameter_servers=True),
        "tpu": StrategyTraits("tpu", "", devices=("tpu",)),
    },
    cross_device_ops={
        "auto": CrossDeviceOpTraits("auto", "", packing="bytes_per_pack"),
        "nccl": CrossDeviceOpTraits("nccl", "", packing="num_packs"),
        "to_one": CrossDeviceOpTraits("to_one", ""),
    },
    models={"mnist_cnn": "", "mlp": ""},
    data={"digits": "", "synthetic": ""},
    optimizers={"adam": "", "sgd": ""},
    loops={"custom": "", "fit": ""},
)
