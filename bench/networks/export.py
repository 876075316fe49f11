# export.py - exports small networks of torchvision, transformers and timm with seeded random weights to ONNX.
"""Usage: python bench/networks/export.py FOLDER [--only PATTERN ...] [--exporter torchscript|dynamo|both] [--list]

Writes FOLDER/NAME.EXPORTER.onnx and, next to it, NAME.EXPORTER.npz with inputs that fit the network: one network per
family, as small as the family allows, with seeded weights. Existing files are kept. A network that an exporter refuses
is listed in FOLDER/export.json with the reason. Each export runs in a process of its own. Needs torch, torchvision,
transformers, timm, onnx and onnxscript, which Graft itself does not.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import warnings

import unseen

SEED = 7
OPSET = 17  # of the TorchScript exporter; the dynamo exporter chooses its own
LONGEST = 900  # seconds that an export may take before it counts as refused
EXPORTERS = ("torchscript", "dynamo")


# ---- torchvision ----

CLASSIFIERS = {
    "alexnet": 96,
    "convnext_tiny": 64,
    "densenet121": 64,
    "efficientnet_b0": 64,
    "googlenet": 64,
    "inception_v3": 96,
    "mnasnet0_5": 64,
    "mobilenet_v2": 64,
    "mobilenet_v3_small": 64,
    "regnet_y_400mf": 64,
    "resnet18": 64,
    "resnext50_32x4d": 64,
    "shufflenet_v2_x0_5": 64,
    "squeezenet1_1": 64,
    "swin_t": 64,
}
SEGMENTERS = {"deeplabv3_mobilenet_v3_large": 64, "fcn_resnet50": 48, "lraspp_mobilenet_v3_large": 64}
# Fewer boxes and smaller images than usual; the detector has all stages.
RCNN = {"min_size": 160, "max_size": 160, "rpn_post_nms_top_n_test": 100, "box_detections_per_img": 20}
DETECTORS = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": (160, {**RCNN, "num_classes": 5}),
    "fasterrcnn_mobilenet_v3_large_fpn": (160, {**RCNN, "num_classes": 5}),
    "fcos_resnet50_fpn": (96, {"min_size": 96, "max_size": 96, "num_classes": 5, "detections_per_img": 20}),
    "keypointrcnn_resnet50_fpn": (96, {**RCNN, "min_size": 96, "max_size": 96, "num_classes": 2, "num_keypoints": 5}),
    "maskrcnn_resnet50_fpn": (96, {**RCNN, "min_size": 96, "max_size": 96, "num_classes": 5}),
    "retinanet_resnet50_fpn": (96, {"min_size": 96, "max_size": 96, "num_classes": 5, "detections_per_img": 20}),
    "ssd300_vgg16": (300, {"num_classes": 5, "detections_per_img": 20}),
    "ssdlite320_mobilenet_v3_large": (320, {"num_classes": 5, "detections_per_img": 20}),
}


def torchvision_classifier(name):
    import torch
    import torchvision

    more = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    model = torchvision.models.get_model(name, weights=None, num_classes=10, **more)
    size = CLASSIFIERS[name]
    return model, {"image": torch.rand(2, 3, size, size)}


def torchvision_segmenter(name):
    import torch
    import torchvision

    model = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=6)
    size = SEGMENTERS[name]
    return Picked(model, ["out"]), {"image": torch.rand(1, 3, size, size)}


def spread_scores(model, images):
    """Sets the normalizations to the statistics of the images, and scales the scores before their softmax or sigmoid
    to a deviation of 2. Untrained scores of a detector are almost equal, so rounding would determine the order of
    boxes."""
    import torch

    model.eval()
    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.train()
        norm.momentum = 0.5
    with torch.no_grad():
        for _ in range(3):
            model(images)
        for norm in norms:
            norm.eval()
        scores = [
            module
            for key, module in model.named_modules()
            if key.endswith(("cls_logits", "cls_score"))
            or re.search(r"classification_head\.module_list\.\d+(\.1)?$", key)
        ]
        scores = [module for module in scores if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear))]
        found = {}
        hooks = [
            module.register_forward_hook(lambda module, _, output: found.__setitem__(module, output.std()))
            for module in scores
        ]
        model(images)
        for hook in hooks:
            hook.remove()
        for module, deviation in found.items():
            module.weight.mul_(2 / deviation)


def torchvision_detector(name):
    import torch
    import torchvision

    size, options = DETECTORS[name]
    model = torchvision.models.get_model(name, weights=None, weights_backbone=None, **options)
    spread_scores(model, [torch.rand(3, size, size) for _ in range(4)])
    return model, {"image": [torch.rand(3, size, size)]}


def torchvision_other(name):
    import torch
    import torchvision

    if name == "raft_small":
        model = torchvision.models.optical_flow.raft_small(weights=None)
        return model, {"first": torch.rand(1, 3, 128, 128), "second": torch.rand(1, 3, 128, 128)}
    if name == "vit_small":
        model = torchvision.models.VisionTransformer(32, 8, 3, 4, 48, 96, num_classes=10)
        return model, {"image": torch.rand(2, 3, 32, 32)}
    if name == "r2plus1d_18":
        model = torchvision.models.video.r2plus1d_18(weights=None, num_classes=10)
        return model, {"clip": torch.rand(1, 3, 4, 32, 32)}
    raise KeyError(name)


# ---- transformers: a configuration of two layers and 32 channels ----

TEXT = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "max_position_embeddings": 64,
}
IMAGE = {"image_size": 32, "patch_size": 8, "num_channels": 3}
TRANSFORMER = {key: TEXT[key] for key in ("hidden_size", "num_hidden_layers", "num_attention_heads")}
DECODER = {**TEXT, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
# Name: configuration, model, options of the configuration, kind of input.
TRANSFORMERS = {
    "albert": ("AlbertConfig", "AlbertModel", {**TEXT, "embedding_size": 16}, "text"),
    "bart": (
        "BartConfig",
        "BartModel",
        {
            "vocab_size": 99,
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 37,
            "decoder_ffn_dim": 37,
            "max_position_embeddings": 64,
        },
        "text",
    ),
    "beit": ("BeitConfig", "BeitModel", {**TRANSFORMER, **IMAGE, "intermediate_size": 37}, "image"),
    "bert": ("BertConfig", "BertModel", TEXT, "text"),
    "bert_for_tokens": ("BertConfig", "BertForTokenClassification", TEXT, "text"),
    "bloom": ("BloomConfig", "BloomModel", {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4}, "text"),
    "clip_vision": (
        "CLIPVisionConfig",
        "CLIPVisionModel",
        {**TRANSFORMER, **IMAGE, "intermediate_size": 37},
        "image",
    ),
    "convnextv2": (
        "ConvNextV2Config",
        "ConvNextV2ForImageClassification",
        {"hidden_sizes": [10, 20, 30, 40], "depths": [2, 2, 3, 2]},
        "image64",
    ),
    "deberta_v2": ("DebertaV2Config", "DebertaV2Model", TEXT, "text"),
    "deit": ("DeiTConfig", "DeiTModel", {**TRANSFORMER, **IMAGE, "intermediate_size": 37}, "image"),
    "distilbert": (
        "DistilBertConfig",
        "DistilBertModel",
        {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37, "max_position_embeddings": 64},
        "text",
    ),
    "dpt": (
        "DPTConfig",
        "DPTForDepthEstimation",
        {
            **TRANSFORMER,
            **IMAGE,
            "num_hidden_layers": 4,
            "intermediate_size": 37,
            "backbone_out_indices": [0, 1, 2, 3],
            "neck_hidden_sizes": [16, 16, 32, 32],
            "fusion_hidden_size": 16,
            "is_hybrid": False,
        },
        "image",
    ),
    "electra": ("ElectraConfig", "ElectraModel", {**TEXT, "embedding_size": 16}, "text"),
    "gpt2": (
        "GPT2Config",
        "GPT2Model",
        {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
        "text",
    ),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXModel", TEXT, "text"),
    "levit": (
        "LevitConfig",
        "LevitForImageClassification",
        {
            "image_size": 64,
            "hidden_sizes": [16, 32, 48],
            "num_attention_heads": [2, 3, 4],
            "depths": [2, 2, 2],
            "key_dim": [8, 8, 8],
        },
        "image64",
    ),
    "llama": ("LlamaConfig", "LlamaModel", DECODER, "text"),
    "mistral": ("MistralConfig", "MistralModel", {**DECODER, "sliding_window": 8, "head_dim": 8}, "text"),
    "mobilevit": (
        "MobileViTConfig",
        "MobileViTForSemanticSegmentation",
        {
            "image_size": 64,
            "hidden_sizes": [24, 32, 40],
            "neck_hidden_sizes": [8, 16, 24, 32, 40, 64, 80],
            "aspp_out_channels": 32,
            "num_labels": 6,
        },
        "image64",
    ),
    "opt": (
        "OPTConfig",
        "OPTModel",
        {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "ffn_dim": 37,
            "word_embed_proj_dim": 32,
            "max_position_embeddings": 64,
        },
        "text",
    ),
    "poolformer": (
        "PoolFormerConfig",
        "PoolFormerForImageClassification",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [2, 2, 2, 2]},
        "image64",
    ),
    "qwen2": ("Qwen2Config", "Qwen2Model", DECODER, "text"),
    "roberta": ("RobertaConfig", "RobertaModel", {**TEXT, "max_position_embeddings": 66}, "text"),
    "rt_detr": (
        "RTDetrConfig",
        "RTDetrForObjectDetection",
        {**unseen.HYBRID, "small_backbone": True},
        "image64",
    ),
    "segformer": (
        "SegformerConfig",
        "SegformerForSemanticSegmentation",
        {
            "hidden_sizes": [16, 32, 32, 64],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 4, 4],
            "decoder_hidden_size": 32,
            "num_labels": 6,
        },
        "image64",
    ),
    "squeezebert": ("SqueezeBertConfig", "SqueezeBertModel", {**TEXT, "embedding_size": 32}, "text"),
    "swin": (
        "SwinConfig",
        "SwinModel",
        {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 2], "num_heads": [2, 4], "window_size": 4},
        "image",
    ),
    "t5_encoder": (
        "T5Config",
        "T5EncoderModel",
        {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": 2, "num_heads": 4},
        "text",
    ),
    "vit": ("ViTConfig", "ViTModel", {**TRANSFORMER, **IMAGE, "intermediate_size": 37}, "image"),
    "wav2vec2": (
        "Wav2Vec2Config",
        "Wav2Vec2Model",
        {
            **TRANSFORMER,
            "intermediate_size": 37,
            "conv_dim": [32, 32, 32],
            "conv_stride": [4, 4, 4],
            "conv_kernel": [8, 8, 8],
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 2,
        },
        "sound",
    ),
    "whisper_encoder": (
        "WhisperConfig",
        "WhisperEncoder",
        {
            "d_model": 32,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 37,
            "num_mel_bins": 16,
            "max_source_positions": 30,
            "vocab_size": 99,
            "pad_token_id": 0,
            "decoder_start_token_id": 1,
            "eos_token_id": 2,
            "bos_token_id": 1,
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
        },
        "spectrum",
    ),
    "yolos": (
        "YolosConfig",
        "YolosForObjectDetection",
        {
            **TRANSFORMER,
            **IMAGE,
            "image_size": [32, 32],
            "intermediate_size": 37,
            "num_detection_tokens": 10,
            "num_labels": 5,
        },
        "image",
    ),
}


def transformers_network(name):
    import torch
    import transformers

    config_name, model_name, options, kind = TRANSFORMERS[name]
    options = dict(options)
    if options.pop("small_backbone", False):
        options["backbone_config"] = unseen.hybrid_backbone()
    config = getattr(transformers, config_name)(**options)
    config._attn_implementation = "eager"
    config.use_cache = False
    config.return_dict = True
    if name == "whisper_encoder":
        from transformers.models.whisper.modeling_whisper import WhisperEncoder as model_class
    else:
        model_class = getattr(transformers, model_name)
    model = model_class(config)
    inputs = {
        "text": lambda: {
            "input_ids": torch.randint(3, 99, (2, 12)),
            "attention_mask": torch.ones(2, 12, dtype=torch.int64),
        },
        "image": lambda: {"pixel_values": torch.rand(1, 3, 32, 32)},
        "image64": lambda: {"pixel_values": torch.rand(1, 3, 64, 64)},
        "sound": lambda: {"input_values": torch.randn(1, 2000)},
        "spectrum": lambda: {"input_features": torch.randn(1, 16, 60)},
    }[kind]()
    if name == "bloom":
        inputs["attention_mask"][1, :4] = 0
    first = {
        "RTDetrForObjectDetection": ["logits", "pred_boxes"],
        "YolosForObjectDetection": ["logits", "pred_boxes"],
        "DPTForDepthEstimation": ["predicted_depth"],
    }.get(model_name, ["logits" if "For" in model_name else "last_hidden_state"])
    return Picked(model, first, list(inputs)), inputs


# ---- timm ----

TIMM = {
    "coat_lite_tiny": 224,
    "convmixer_768_32": 64,
    "crossvit_9_240": 240,
    "cspresnet50": 64,
    "dla34": 64,
    "edgenext_xx_small": 64,
    "efficientformer_l1": 224,
    "ese_vovnet19b_dw": 64,
    "fastvit_t8": 64,
    "ghostnet_100": 64,
    "halonet26t": 256,
    "hgnetv2_b0": 64,
    "hrnet_w18_small": 64,
    "lambda_resnet26t": 64,
    "lcnet_050": 64,
    "mixer_s32_224": 224,
    "mobilenetv4_conv_small": 64,
    "mobileone_s0": 64,
    "mobilevitv2_050": 64,
    "nf_resnet26": 64,
    "pit_ti_224": 224,
    "pvt_v2_b0": 64,
    "repvgg_a0": 64,
    "resnest14d": 64,
    "rexnet_100": 64,
    "skresnet18": 64,
    "tinynet_e": 64,
    "tiny_vit_5m_224": 224,
    "visformer_tiny": 224,
    "xcit_nano_12_p16_224": 224,
}


def timm_network(name):
    import timm
    import torch

    size = TIMM[name]
    model = timm.create_model(name, pretrained=False, num_classes=10, exportable=True)
    return model, {"image": torch.rand(1, 3, size, size)}


# ---- plain PyTorch: recurrences and control flow, where the data decide a shape ----

PLAIN = ("lstm_tagger", "gru_classifier", "rnn_bidirectional", "encoder_decoder", "instance_norm_style", "nms_tail")


def plain_network(name):
    import torch
    from torch import nn

    class Tagger(nn.Module):
        def __init__(self, kind, bidirectional):
            super().__init__()
            self.embedding = nn.Embedding(50, 16)
            self.recurrence = kind(16, 24, num_layers=2, batch_first=True, bidirectional=bidirectional)
            self.head = nn.Linear(48 if bidirectional else 24, 7)

        def forward(self, tokens):
            return self.head(self.recurrence(self.embedding(tokens))[0])

    class Style(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.ReflectionPad2d(4),
                nn.Conv2d(3, 8, 9),
                nn.InstanceNorm2d(8, affine=True),
                nn.ReLU(),
                nn.Conv2d(8, 16, 3, 2, 1),
                nn.InstanceNorm2d(16, affine=True),
                nn.ReLU(),
                nn.Upsample(scale_factor=2),
                nn.ReflectionPad2d(1),
                nn.Conv2d(16, 3, 3),
            )

        def forward(self, image):
            return torch.tanh(self.body(image / 127.5 - 1)) * 127.5 + 127.5

    class NmsTail(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 9, 3, 2, 1))

        def forward(self, image):
            import torchvision

            raw = self.body(image).flatten(2).transpose(1, 2)[0]
            corner = raw[:, :2].sigmoid() * 32
            boxes = torch.cat([corner, corner + raw[:, 2:4].exp() * 4], 1)
            scores, labels = raw[:, 4:].softmax(1).max(1)
            keep = scores > 0.2
            boxes, scores, labels = boxes[keep], scores[keep], labels[keep]
            kept = torchvision.ops.batched_nms(boxes, scores, labels, 0.5)[:20]
            return boxes[kept], scores[kept], labels[kept]

    if name == "lstm_tagger":
        return Tagger(nn.LSTM, False), {"tokens": torch.randint(0, 50, (2, 9))}
    if name == "gru_classifier":
        return Tagger(nn.GRU, True), {"tokens": torch.randint(0, 50, (2, 9))}
    if name == "rnn_bidirectional":
        return Tagger(nn.RNN, True), {"tokens": torch.randint(0, 50, (2, 9))}
    if name == "encoder_decoder":
        model = nn.Transformer(32, 4, 2, 2, 64, batch_first=True)
        return model, {"source": torch.randn(2, 7, 32), "target": torch.randn(2, 5, 32)}
    if name == "instance_norm_style":
        return Style(), {"image": torch.rand(1, 3, 32, 32) * 255}
    if name == "nms_tail":
        return NmsTail(), {"image": torch.rand(1, 3, 48, 48)}
    raise KeyError(name)


def Picked(model, outputs, inputs=None):  # noqa: N802 - it stands for a class of PyTorch, which is imported late
    """Returns a network that takes tensors in order and returns a tuple of the named outputs."""
    import torch

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *tensors):
            found = self.model(*tensors) if inputs is None else self.model(**dict(zip(inputs, tensors, strict=True)))
            return tuple(found[name] for name in outputs)

    return Wrapped()


NETWORKS = {
    **{f"torchvision_{name}": (torchvision_classifier, name) for name in CLASSIFIERS},
    **{f"torchvision_{name}": (torchvision_segmenter, name) for name in SEGMENTERS},
    **{f"torchvision_{name}": (torchvision_detector, name) for name in DETECTORS},
    **{f"torchvision_{name}": (torchvision_other, name) for name in ("raft_small", "vit_small", "r2plus1d_18")},
    **{f"transformers_{name}": (transformers_network, name) for name in TRANSFORMERS},
    **{f"timm_{name}": (timm_network, name) for name in TIMM},
    **{f"torch_{name}": (plain_network, name) for name in PLAIN},
    **{name: (unseen.make, name) for name in unseen.NETWORKS},
}


def export(name: str, exporter: str, path: pathlib.Path) -> None:
    import numpy as np
    import torch

    warnings.filterwarnings("ignore")
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    make, argument = NETWORKS[name]
    model, inputs = make(argument)
    model.eval()
    options = {"input_names": list(inputs), "dynamo": exporter == "dynamo"}
    if exporter == "torchscript":
        options["opset_version"] = OPSET
    else:
        options["external_data"] = False
    unfinished = path.with_suffix(".part.onnx")
    with torch.no_grad():
        torch.onnx.export(model, tuple(inputs.values()), str(unfinished), **options)
    arrays = {}
    for key, value in inputs.items():
        tensor = value[0] if isinstance(value, list) else value
        arrays[key] = tensor.numpy()
    import onnx

    # TorchScript omits an input that no node reads.
    names = [value.name for value in onnx.load(str(unfinished), load_external_data=False).graph.input]
    missing = [key for key in names if key not in arrays]
    if missing and len(names) == len(arrays):
        arrays = dict(zip(names, arrays.values(), strict=True))
    np.savez(path.with_suffix(".npz"), **{key: arrays[key] for key in names})
    unfinished.rename(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="names, with * and ?")
    parser.add_argument("--exporter", choices=[*EXPORTERS, "both"], default="both")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = [name for name in NETWORKS if any(fnmatch.fnmatch(name, pattern) for pattern in given.only)]
    if given.list:
        print("\n".join(names))
        return 0
    if given.folder is None:
        parser.error("FOLDER is missing")
    if not names:
        parser.error("--only names no network; see --list")
    if given.one:
        export(names[0], given.exporter, given.folder / f"{names[0]}.{given.exporter}.onnx")
        return 0
    given.folder.mkdir(parents=True, exist_ok=True)
    record = given.folder / "export.json"
    refused = json.loads(record.read_text()) if record.exists() else {}
    for name in names:
        for exporter in EXPORTERS if given.exporter == "both" else [given.exporter]:
            path = given.folder / f"{name}.{exporter}.onnx"
            if path.exists():
                continue
            command = [sys.executable, __file__, str(given.folder), "--one", "--only", name, "--exporter", exporter]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)
                lines = (done.stderr.strip() or "no message").splitlines()
                reason = "" if done.returncode == 0 else lines[-1][:300]
            except subprocess.TimeoutExpired:
                reason = f"not exported within {LONGEST} s"
            path.with_suffix(".part.onnx").unlink(missing_ok=True)
            refused.pop(path.name, None)
            if reason:
                refused[path.name] = reason
            print(f"{path.name}: {reason or f'{path.stat().st_size / 1e6:.1f} MB'}", flush=True)
            record.write_text(json.dumps(refused, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
