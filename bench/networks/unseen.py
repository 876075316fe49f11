# unseen.py - defines the networks of docs/engines.md that are not in export.py: small, with seeded weights, one
# exporter each.
"""Almost no part of Graft was developed with these networks: detectors, segmenters, language, speech, graph and
generative networks of transformers, diffusers and plain PyTorch. engines.py measures them, and those of export.py in
SHARED."""

from __future__ import annotations

from collections.abc import Callable

# Name: kind, exporter, function that returns the network and its inputs.
NETWORKS: dict[str, tuple[str, str, Callable]] = {}
# Networks of export.py that are not in docs/networks.md in this form: name, kind, exporter.
SHARED = [
    ("torchvision_fasterrcnn_mobilenet_v3_large_fpn", "detector", "torchscript"),
    ("torchvision_keypointrcnn_resnet50_fpn", "detector", "torchscript"),
    ("torchvision_retinanet_resnet50_fpn", "detector", "torchscript"),
    ("torchvision_ssd300_vgg16", "detector", "torchscript"),
    ("transformers_rt_detr", "detector", "dynamo"),
    ("transformers_yolos", "detector", "dynamo"),
    ("torchvision_deeplabv3_mobilenet_v3_large", "segmenter", "dynamo"),
    ("transformers_segformer", "segmenter", "dynamo"),
    ("transformers_bert", "language", "dynamo"),
    ("transformers_llama", "language", "dynamo"),
    ("transformers_wav2vec2", "speech", "dynamo"),
    ("transformers_whisper_encoder", "speech", "dynamo"),
    ("timm_halonet26t", "image", "dynamo"),
    ("torchvision_raft_small", "image", "torchscript"),
]


def network(kind: str, exporter: str) -> Callable:
    def add(make: Callable) -> Callable:
        NETWORKS[make.__name__] = (kind, exporter, make)
        return make

    return add


def make(name: str):
    return NETWORKS[name][2]()


def outputs_of(model, *names):
    """Returns a network that takes its inputs by name and returns the named outputs as a tuple."""
    import torch

    class Named(torch.nn.Module):
        def __init__(self, inputs):
            super().__init__()
            self.model = model
            self.inputs = inputs

        def forward(self, *tensors):
            found = self.model(**dict(zip(self.inputs, tensors, strict=True)))
            return tuple(found[name] for name in names)

    return Named


def of_transformers(config, model_name, inputs, *outputs, library="transformers"):
    import importlib

    config._attn_implementation = "eager"
    config.use_cache = False
    model = getattr(importlib.import_module(library), model_name)(config)
    return outputs_of(model, *outputs)(list(inputs)), inputs


def tokens(count=12, batch=2):
    import torch

    return {
        "input_ids": torch.randint(3, 99, (batch, count)),
        "attention_mask": torch.ones(batch, count, dtype=torch.int64),
    }


def image(size, batch=1):
    import torch

    return {"pixel_values": torch.rand(batch, 3, size, size)}


def residual_backbone(*stages):
    import transformers

    return transformers.ResNetConfig(
        embedding_size=16,
        hidden_sizes=[16, 32, 48, 64],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=[f"stage{stage}" for stage in stages],
    )


TEXT = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
DECODER = {**TEXT, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "head_dim": 8}
# Options of encoder and decoder, with the names of the DETR families.
DETR = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "num_queries": 20,
    "num_labels": 5,
}
OWN_BACKBONE = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}


# ---- detectors ----


@network("detector", "dynamo")
def transformers_detr():
    import transformers

    config = transformers.DetrConfig(**DETR, **OWN_BACKBONE, backbone_config=residual_backbone(4))
    return of_transformers(config, "DetrForObjectDetection", image(64), "logits", "pred_boxes")


@network("detector", "torchscript")
def transformers_conditional_detr():
    import transformers

    config = transformers.ConditionalDetrConfig(**DETR, **OWN_BACKBONE, backbone_config=residual_backbone(4))
    return of_transformers(config, "ConditionalDetrForObjectDetection", image(64), "logits", "pred_boxes")


@network("detector", "torchscript")
def transformers_deformable_detr():
    import transformers

    config = transformers.DeformableDetrConfig(
        **DETR,
        **OWN_BACKBONE,
        backbone_config=residual_backbone(2, 3, 4),
        num_feature_levels=4,
        two_stage=True,
        with_box_refine=True,
        two_stage_num_proposals=20,
        init_std=0.2,
    )
    return of_transformers(config, "DeformableDetrForObjectDetection", image(128), "logits", "pred_boxes")


@network("detector", "torchscript")
def transformers_deformable_detr_one_stage():
    import transformers

    config = transformers.DeformableDetrConfig(
        **DETR, **OWN_BACKBONE, backbone_config=residual_backbone(2, 3, 4), num_feature_levels=3, init_std=0.2
    )
    return of_transformers(config, "DeformableDetrForObjectDetection", image(128), "logits", "pred_boxes")


HYBRID = {
    "num_labels": 5,
    "d_model": 32,
    "encoder_hidden_dim": 32,
    "encoder_in_channels": [64, 128, 256],
    "decoder_in_channels": [32, 32, 32],
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "decoder_layers": 2,
    "num_queries": 30,
    "num_denoising": 0,
    "hidden_expansion": 0.5,
}


def hybrid_backbone():
    import transformers

    return transformers.RTDetrResNetConfig(
        embedding_size=32,
        hidden_sizes=[32, 64, 128, 256],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )


@network("detector", "torchscript")
def transformers_rt_detr_v2():
    import transformers

    config = transformers.RTDetrV2Config(**HYBRID, backbone_config=hybrid_backbone())
    return of_transformers(config, "RTDetrV2ForObjectDetection", image(64), "logits", "pred_boxes")


@network("detector", "torchscript")
def transformers_d_fine():
    import transformers

    config = transformers.DFineConfig(**HYBRID, backbone_config=hybrid_backbone(), decoder_n_points=[3, 3, 3])
    return of_transformers(config, "DFineForObjectDetection", image(64), "logits", "pred_boxes")


@network("detector", "dynamo")
def transformers_owlvit():
    import torch
    import transformers

    vision = {**TEXT, "image_size": 32, "patch_size": 8}
    config = transformers.OwlViTConfig(text_config={**TEXT, "max_position_embeddings": 16}, vision_config=vision)
    config.projection_dim = 32
    inputs = {"input_ids": torch.randint(3, 99, (2, 16)), **image(32), "attention_mask": torch.ones(2, 16).long()}
    return of_transformers(config, "OwlViTForObjectDetection", inputs, "logits", "pred_boxes")


@network("detector", "torchscript")
def torch_yolo_with_suppression():
    """Three scales, distances from a softmax over bins, and non-maximum suppression for each class."""
    import torch
    import torchvision
    from torch import nn

    class Yolo(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [3, 16, 24, 32, 40, 48]
            self.stages = nn.ModuleList(
                nn.Sequential(
                    nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.SiLU(), nn.Conv2d(b, b, 3, 1, 1), nn.SiLU()
                )
                for a, b in zip(widths, widths[1:], strict=False)
            )
            self.heads = nn.ModuleList(nn.Conv2d(width, 4 * 8 + 4, 1) for width in widths[3:])

        def forward(self, picture):
            found = []
            x = picture
            for index, stage in enumerate(self.stages):
                x = stage(x)
                if index >= 2:
                    raw = self.heads[index - 2](x)
                    stride = 2 ** (index + 1)
                    rows, columns = raw.shape[2:]
                    bins = raw[:, :32].view(1, 4, 8, rows * columns).softmax(2)
                    away = (bins * torch.arange(8.0).view(1, 1, 8, 1)).sum(2)
                    y, x_at = torch.meshgrid(torch.arange(rows) + 0.5, torch.arange(columns) + 0.5, indexing="ij")
                    at = torch.stack([x_at.flatten(), y.flatten()])[None]
                    box = torch.cat([at - away[:, :2], at + away[:, 2:]], 1) * stride
                    found.append(torch.cat([box, (raw[:, 32:] * 4).flatten(2).sigmoid()], 1))
            rows = torch.cat(found, 2)[0].transpose(0, 1)
            scores, labels = rows[:, 4:].max(1)
            kept = torchvision.ops.batched_nms(rows[:, :4], scores, labels, 0.5)[:30]
            return rows[kept, :4], scores[kept], labels[kept]

    return Yolo(), {"picture": torch.rand(1, 3, 96, 96)}


@network("detector", "dynamo")
def torch_center_net():
    """Peaks of a heat map: pixels that equal their 3x3 maximum, the best of these, and the features at their
    positions."""
    import torch
    import torch.nn.functional as F  # noqa: N812 - PyTorch's own name of it
    from torch import nn

    class CenterNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(3, 16, 3, 2, 1),
                nn.ReLU(),
                nn.Conv2d(16, 32, 3, 2, 1),
                nn.ReLU(),
                nn.ConvTranspose2d(32, 16, 4, 2, 1),
                nn.ReLU(),
            )
            self.heat, self.size, self.offset = nn.Conv2d(16, 3, 1), nn.Conv2d(16, 2, 1), nn.Conv2d(16, 2, 1)

        def forward(self, picture):
            x = self.body(picture)
            heat = (self.heat(x) * 8).sigmoid()
            heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat)
            scores, index = heat.flatten(1).topk(20)
            pixel = index % (24 * 24)
            at = pixel[:, None].expand(-1, 2, -1)
            size = self.size(x).flatten(2).gather(2, at)
            offset = self.offset(x).flatten(2).gather(2, at)
            center = torch.stack([pixel % 24, pixel // 24], 1) + offset
            return torch.cat([center - size / 2, center + size / 2], 1), scores, index // (24 * 24)

    return CenterNet(), {"picture": torch.rand(1, 3, 48, 48)}


# ---- segmenters ----


def windowed_backbone():
    import transformers

    return transformers.SwinConfig(
        image_size=64,
        patch_size=4,
        embed_dim=16,
        depths=[1, 1, 1, 1],
        num_heads=[2, 2, 4, 4],
        window_size=4,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )


@network("segmenter", "torchscript")
def transformers_mask2former():
    import transformers

    config = transformers.Mask2FormerConfig(
        backbone_config=windowed_backbone(),
        feature_size=32,
        mask_feature_size=32,
        hidden_dim=32,
        encoder_feedforward_dim=48,
        dim_feedforward=48,
        encoder_layers=2,
        decoder_layers=3,
        num_attention_heads=4,
        num_queries=10,
        num_labels=5,
    )
    outputs = ("class_queries_logits", "masks_queries_logits")
    return of_transformers(config, "Mask2FormerForUniversalSegmentation", image(64), *outputs)


@network("segmenter", "dynamo")
def transformers_maskformer():
    import transformers

    decoder = transformers.DetrConfig(
        **{**DETR, "num_queries": 10}, **OWN_BACKBONE, backbone_config=residual_backbone(4)
    )
    config = transformers.MaskFormerConfig(
        backbone_config=windowed_backbone(),
        decoder_config=decoder,
        fpn_feature_size=32,
        mask_feature_size=32,
        num_labels=5,
    )
    outputs = ("class_queries_logits", "masks_queries_logits")
    return of_transformers(config, "MaskFormerForInstanceSegmentation", image(64), *outputs)


@network("segmenter", "torchscript")
def transformers_sam():
    import torch
    import transformers

    config = transformers.SamConfig(
        vision_config={
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 64,
            "patch_size": 8,
            "output_channels": 16,
            "window_size": 3,
            "global_attn_indexes": [1],
            "mlp_dim": 48,
            "num_pos_feats": 8,
        },
        prompt_encoder_config={"hidden_size": 16, "image_size": 64, "patch_size": 8, "mask_input_channels": 8},
        mask_decoder_config={
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "mlp_dim": 32,
            "iou_head_hidden_dim": 16,
        },
    )
    inputs = {**image(64), "input_points": torch.rand(1, 1, 2, 2) * 64}
    return of_transformers(config, "SamModel", inputs, "iou_scores", "pred_masks")


@network("segmenter", "torchscript")
def transformers_upernet():
    import transformers

    backbone = transformers.ConvNextConfig(
        hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 2, 1], out_features=["stage1", "stage2", "stage3", "stage4"]
    )
    config = transformers.UperNetConfig(
        backbone_config=backbone, hidden_size=32, num_labels=5, use_auxiliary_head=False, pool_scales=[1, 2]
    )
    return of_transformers(config, "UperNetForSemanticSegmentation", image(64), "logits")


@network("segmenter", "dynamo")
def transformers_depth_anything():
    import transformers

    backbone = transformers.Dinov2Config(
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        image_size=56,
        patch_size=14,
        out_features=["stage1", "stage2", "stage3", "stage4"],
        apply_layernorm=True,
        reshape_hidden_states=False,
    )
    config = transformers.DepthAnythingConfig(
        backbone_config=backbone,
        patch_size=14,
        reassemble_hidden_size=32,
        neck_hidden_sizes=[16, 16, 32, 32],
        fusion_hidden_size=16,
        head_hidden_size=16,
    )
    return of_transformers(config, "DepthAnythingForDepthEstimation", image(56), "predicted_depth")


@network("segmenter", "torchscript")
def transformers_clipseg():
    import torch
    import transformers

    vision = {**TEXT, "image_size": 32, "patch_size": 8, "num_hidden_layers": 4}
    config = transformers.CLIPSegConfig(
        text_config={**TEXT, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0},
        vision_config=vision,
        projection_dim=32,
        extract_layers=[1, 2, 3],
        reduce_dim=16,
        decoder_num_attention_heads=4,
        decoder_intermediate_size=32,
    )
    inputs = {"input_ids": torch.randint(3, 99, (1, 12)), **image(32), "attention_mask": torch.ones(1, 12).long()}
    return of_transformers(config, "CLIPSegForImageSegmentation", inputs, "logits")


@network("segmenter", "torchscript")
def torch_segnet():
    """The decoder scatters each maximum back to its position."""
    import torch
    from torch import nn

    class SegNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList(nn.Conv2d(a, b, 3, 1, 1) for a, b in [(3, 16), (16, 24), (24, 32)])
            self.up = nn.ModuleList(nn.Conv2d(a, b, 3, 1, 1) for a, b in [(32, 24), (24, 16), (16, 5)])
            self.pool = nn.MaxPool2d(2, return_indices=True)

        def unpool(self, x, index):  # the exporters do not support MaxUnpool2d
            batch, channels, rows, columns = x.shape
            empty = torch.zeros(batch, channels, rows * columns * 4)
            return empty.scatter(2, index.flatten(2), x.flatten(2)).view(batch, channels, rows * 2, columns * 2)

        def forward(self, picture):
            x, kept = picture, []
            for layer in self.down:
                x, index = self.pool(layer(x).relu())
                kept.append(index)
            for layer in self.up:
                x = layer(self.unpool(x.relu(), kept.pop()))
            return x

    return SegNet(), {"picture": torch.rand(2, 3, 32, 32)}


@network("segmenter", "dynamo")
def torch_attention_unet():
    """Gated skips, group normalization, bicubic enlargement, and a squeeze over the width and height."""
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import nn

    def block(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, 1, 1), nn.GroupNorm(4, b), nn.GELU())

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.third = block(3, 16), block(16, 32), block(32, 48)
            self.gate, self.key = nn.Conv2d(48, 32, 1), nn.Conv2d(32, 32, 1)
            self.join, self.last = block(80, 32), nn.Conv2d(48, 4, 1)

        def forward(self, picture):
            a = self.first(picture)
            b = self.second(F.avg_pool2d(a, 2))
            c = self.third(F.adaptive_avg_pool2d(b, (8, 8)))
            up = F.interpolate(c, scale_factor=2, mode="bicubic", align_corners=False)
            b = b * torch.sigmoid(self.gate(up) + self.key(b))
            b = self.join(torch.cat([b, up], 1))
            up = F.interpolate(b, size=a.shape[2:], mode="bilinear", align_corners=True)
            return self.last(torch.cat([a, up], 1)).softmax(1)

    return UNet(), {"picture": torch.rand(1, 3, 32, 32)}


# ---- language ----


@network("language", "dynamo")
def transformers_modernbert():
    import transformers

    config = transformers.ModernBertConfig(
        **TEXT, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=8
    )
    return of_transformers(config, "ModernBertModel", tokens(), "last_hidden_state")


@network("language", "torchscript")
def transformers_t5():
    import transformers

    config = transformers.T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    inputs = {**tokens(), "decoder_input_ids": tokens(7)["input_ids"]}
    return of_transformers(config, "T5ForConditionalGeneration", inputs, "logits")


@network("language", "torchscript")
def transformers_longformer():
    import transformers

    config = transformers.LongformerConfig(**TEXT, attention_window=8, pad_token_id=0)
    return of_transformers(config, "LongformerModel", tokens(16), "last_hidden_state")


@network("language", "dynamo")
def transformers_fnet():
    import transformers

    config = transformers.FNetConfig(**{k: v for k, v in TEXT.items() if k != "num_attention_heads"})
    return of_transformers(config, "FNetModel", {"input_ids": tokens(16)["input_ids"]}, "last_hidden_state")


@network("language", "torchscript")
def transformers_xlnet():
    import transformers

    config = transformers.XLNetConfig(vocab_size=99, d_model=32, n_layer=2, n_head=4, d_inner=48)
    return of_transformers(config, "XLNetModel", tokens(), "last_hidden_state")


@network("language", "dynamo")
def transformers_gemma2():
    import transformers

    config = transformers.Gemma2Config(**DECODER, sliding_window=8, query_pre_attn_scalar=8)
    return of_transformers(config, "Gemma2ForCausalLM", tokens(), "logits")


@network("language", "dynamo")
def transformers_qwen3():
    import transformers

    return of_transformers(transformers.Qwen3Config(**DECODER), "Qwen3ForCausalLM", tokens(), "logits")


@network("language", "dynamo")
def transformers_mixtral():
    import transformers

    config = transformers.MixtralConfig(**DECODER, num_local_experts=4, num_experts_per_tok=2)
    config._experts_implementation = "batched_mm"  # the default is an operator that PyTorch's exporter does not have
    return of_transformers(config, "MixtralForCausalLM", tokens(6, 1), "logits")


@network("language", "torchscript")
def transformers_mamba():
    import transformers

    config = transformers.MambaConfig(vocab_size=99, hidden_size=16, state_size=4, num_hidden_layers=1, pad_token_id=0)
    return of_transformers(config, "MambaModel", {"input_ids": tokens(6, 1)["input_ids"]}, "last_hidden_state")


@network("language", "dynamo")
def transformers_deberta():
    import transformers

    config = transformers.DebertaConfig(**TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"])
    return of_transformers(config, "DebertaModel", tokens(), "last_hidden_state")


@network("language", "torchscript")
def transformers_funnel():
    import transformers

    config = transformers.FunnelConfig(vocab_size=99, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=48)
    return of_transformers(config, "FunnelModel", tokens(), "last_hidden_state")


@network("language", "dynamo")
def transformers_perceiver():
    import transformers
    from transformers.models.perceiver.modeling_perceiver import PerceiverTextPreprocessor

    config = transformers.PerceiverConfig(
        vocab_size=99,
        num_latents=8,
        d_latents=32,
        d_model=32,
        num_blocks=1,
        num_self_attends_per_block=2,
        num_self_attention_heads=4,
        num_cross_attention_heads=4,
        max_position_embeddings=64,
        qk_channels=32,
        v_channels=32,
    )
    config._attn_implementation = "eager"
    model = transformers.PerceiverModel(config, input_preprocessor=PerceiverTextPreprocessor(config))
    inputs = {"inputs": tokens()["input_ids"], "attention_mask": tokens()["attention_mask"]}
    return outputs_of(model, "last_hidden_state")(list(inputs)), inputs


# ---- speech ----

SOUND = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "conv_dim": [32, 32, 32],
    "conv_stride": [4, 4, 4],
    "conv_kernel": [8, 8, 8],
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": 20,
}


def sound(samples=2000):
    import torch

    return {"input_values": torch.randn(1, samples)}


@network("speech", "torchscript")
def transformers_hubert():
    import transformers

    return of_transformers(transformers.HubertConfig(**SOUND), "HubertForCTC", sound(), "logits")


@network("speech", "dynamo")
def transformers_wavlm():
    import transformers

    return of_transformers(transformers.WavLMConfig(**SOUND), "WavLMForCTC", sound(), "logits")


@network("speech", "torchscript")
def transformers_conformer():
    import transformers

    config = transformers.Wav2Vec2ConformerConfig(**SOUND, position_embeddings_type="relative")
    return of_transformers(config, "Wav2Vec2ConformerForCTC", sound(), "logits")


@network("speech", "dynamo")
def transformers_whisper():
    import torch
    import transformers

    config = transformers.WhisperConfig(
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_mel_bins=16,
        max_source_positions=30,
        max_target_positions=20,
        vocab_size=99,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    inputs = {"input_features": torch.randn(1, 16, 60), "decoder_input_ids": torch.randint(3, 99, (1, 7))}
    return of_transformers(config, "WhisperForConditionalGeneration", inputs, "logits")


@network("speech", "torchscript")
def transformers_encodec():
    import torch
    import transformers

    config = transformers.EncodecConfig(
        num_filters=4,
        hidden_size=16,
        codebook_size=32,
        codebook_dim=16,
        upsampling_ratios=[4, 2],
        target_bandwidths=[24.0],
    )
    inputs = {"input_values": torch.randn(1, 1, 480)}
    return of_transformers(config, "EncodecModel", inputs, "audio_codes", "audio_values")


@network("speech", "torchscript")
def transformers_vits_decoder():
    """The vocoder of VITS on a spectrogram: transposed convolutions and dilated residual blocks."""
    import torch
    import transformers
    from transformers.models.vits.modeling_vits import VitsHifiGan

    config = transformers.VitsConfig(
        flow_size=16,
        upsample_initial_channel=32,
        upsample_rates=[4, 4],
        upsample_kernel_sizes=[8, 8],
        resblock_kernel_sizes=[3, 5],
        resblock_dilation_sizes=[[1, 3], [1, 3]],
    )
    return VitsHifiGan(config), {"spectrogram": torch.randn(1, 16, 20)}


@network("speech", "dynamo")
def torch_mel_recognizer():
    """A speech recognizer from samples to letters: spectrogram, mel filters, logarithm, convolutions, a
    bidirectional GRU."""
    import torch
    from torch import nn

    class Recognizer(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("window", torch.hann_window(64))
            self.register_buffer("filters", torch.rand(33, 16))
            self.body = nn.Sequential(nn.Conv1d(16, 32, 3, 2, 1), nn.BatchNorm1d(32), nn.ReLU())
            self.recurrence = nn.GRU(32, 24, batch_first=True, bidirectional=True)
            self.head = nn.Linear(48, 20)

        def forward(self, samples):
            transform = torch.stft(samples, 64, 32, window=self.window, center=True, return_complex=True)
            power = torch.view_as_real(transform).pow(2).sum(-1)
            mel = (power.transpose(1, 2) @ self.filters).clamp(min=1e-5).log().transpose(1, 2)
            return self.head(self.recurrence(self.body(mel).transpose(1, 2))[0]).log_softmax(-1)

    return Recognizer(), {"samples": torch.randn(2, 800)}


@network("speech", "torchscript")
def torch_separator():
    """Conv-TasNet: learned filters, dilated separable convolutions with global normalization, a mask for each voice."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, dilation):
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv1d(24, 32, 1),
                nn.PReLU(),
                nn.GroupNorm(1, 32),
                nn.Conv1d(32, 32, 3, padding=dilation, dilation=dilation, groups=32),
                nn.PReLU(),
                nn.GroupNorm(1, 32),
                nn.Conv1d(32, 24, 1),
            )

        def forward(self, x):
            return x + self.layers(x)

    class Separator(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode = nn.Conv1d(1, 24, 16, 8), nn.ConvTranspose1d(24, 1, 16, 8)
            self.blocks = nn.Sequential(*[Block(2**index) for index in range(4)])
            self.mask = nn.Conv1d(24, 48, 1)

        def forward(self, samples):
            x = self.encode(samples[:, None]).relu()
            masks = self.mask(self.blocks(x)).view(-1, 2, 24, x.shape[-1]).sigmoid()
            return self.decode((x[:, None] * masks).flatten(0, 1)).view(samples.shape[0], 2, -1)

    return Separator(), {"samples": torch.randn(2, 800)}


# ---- graph networks: nodes with 16 numbers each, and edges as two rows of indices ----


def graph(nodes=24, edges=60):
    import torch

    return {"x": torch.randn(nodes, 16), "edges": torch.randint(0, nodes, (2, edges))}


@network("graph", "dynamo")
def torch_gcn():
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.linear = nn.Linear(a, b)

        def forward(self, x, source, target):
            degree = torch.ones(x.shape[0]).index_add(0, target, torch.ones(target.shape[0]))
            weight = degree.rsqrt()[source] * degree.rsqrt()[target]
            messages = self.linear(x)[source] * weight[:, None]
            return torch.zeros(x.shape[0], messages.shape[1]).index_add(0, target, messages)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Layer(16, 32), Layer(32, 5)

        def forward(self, x, edges):
            return self.second(self.first(x, edges[0], edges[1]).relu(), edges[0], edges[1])

    return Network(), graph()


@network("graph", "dynamo")
def torch_gat():
    """Attention over the incoming edges of a node: a softmax by scattered maxima and sums."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, a, b, heads):
            super().__init__()
            self.linear = nn.Linear(a, b * heads)
            self.left, self.right = nn.Parameter(torch.randn(heads, b)), nn.Parameter(torch.randn(heads, b))

        def forward(self, x, source, target):
            h = self.linear(x).view(x.shape[0], *self.left.shape)
            score = (h * self.left).sum(-1)[source] + (h * self.right).sum(-1)[target]
            score = nn.functional.leaky_relu(score, 0.2)
            at = target[:, None].expand_as(score)
            nodes = torch.zeros(x.shape[0], self.left.shape[0])
            most = (nodes - 1e9).scatter_reduce(0, at, score, "amax")
            weight = (score - most[target]).exp()
            weight = weight / nodes.scatter_add(0, at, weight)[target]
            messages = (h[source] * weight[..., None]).flatten(1)
            return torch.zeros(x.shape[0], messages.shape[1]).scatter_add(
                0, target[:, None].expand_as(messages), messages
            )

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Layer(16, 8, 4), Layer(32, 5, 1)

        def forward(self, x, edges):
            return self.second(nn.functional.elu(self.first(x, edges[0], edges[1])), edges[0], edges[1])

    return Network(), graph()


@network("graph", "dynamo")
def torch_sage():
    """Concatenates the means and the maxima of the neighbors with the node itself."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(48, 16), nn.Linear(48, 16)])
            self.head = nn.Linear(16, 5)

        def forward(self, x, edges):
            at = edges[1][:, None].expand(-1, 16)
            for layer in self.layers:
                sent = x[edges[0]]
                mean = torch.zeros_like(x).scatter_reduce(0, at, sent, "mean", include_self=False)
                most = torch.zeros_like(x).scatter_reduce(0, at, sent, "amax", include_self=False)
                x = nn.functional.normalize(layer(torch.cat([x, mean, most], 1)).relu(), dim=1)
            return self.head(x)

    return Network(), graph()


@network("graph", "torchscript")
def torch_edge_conv():
    """DGCNN: the nearest neighbors of each point by distance, and the maximum of a layer on the differences."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(6, 16), nn.Linear(32, 32)])
            self.head = nn.Linear(32, 5)

        def forward(self, points):
            x = points
            for layer in self.layers:
                near = torch.cdist(x, x).topk(6, largest=False).indices
                at = near.flatten(1)[..., None].expand(-1, -1, x.shape[-1])
                around = x.gather(1, at).view(x.shape[0], x.shape[1], 6, x.shape[-1])
                center = x[:, :, None].expand_as(around)
                x = nn.functional.leaky_relu(layer(torch.cat([center, around - center], -1))).amax(2)
            return self.head(x.amax(1))

    return Network(), {"points": torch.randn(2, 40, 3)}


@network("graph", "dynamo")
def torch_message_passing():
    """MPNN: messages by a network on each edge, a GRU cell at each node, and sums of the nodes of each graph."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.edge = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 256))
            self.cell = nn.GRUCell(16, 16)
            self.head = nn.Linear(16, 3)

        def forward(self, x, edges, features, graphs):
            weight = self.edge(features).view(-1, 16, 16)
            for _ in range(3):
                messages = torch.bmm(weight, x[edges[0]][..., None])[..., 0]
                x = self.cell(torch.zeros_like(x).index_add(0, edges[1], messages), x)
            return self.head(torch.zeros(3, 16).index_add(0, graphs, x))

    graphs = torch.arange(24) // 8
    return Network(), {**graph(), "features": torch.randn(60, 4), "graphs": graphs}


@network("graph", "torchscript")
def torch_point_net():
    """PointNet++: furthest points one after the other, the points within a radius, and interpolation back."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.local = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 24))
            self.head = nn.Linear(24, 5)

        def forward(self, points):
            chosen = [torch.zeros(points.shape[0], dtype=torch.int64)]
            nearest = torch.full(points.shape[:2], 1e10)
            for _ in range(7):
                last = points.gather(1, chosen[-1][:, None, None].expand(-1, 1, 3))
                nearest = torch.minimum(nearest, (points - last).square().sum(-1))
                chosen.append(nearest.argmax(1))
            centers = points.gather(1, torch.stack(chosen, 1)[..., None].expand(-1, -1, 3))
            away = points[:, None] - centers[:, :, None]
            inside = away.square().sum(-1, keepdim=True) < 2
            local = torch.where(inside, self.local(away), -1e4).amax(2)
            distance, at = torch.cdist(points, centers).topk(3, largest=False)
            weight = 1 / (distance + 1e-4)
            weight = weight / weight.sum(-1, keepdim=True)
            around = local[:, None].expand(-1, points.shape[1], -1, -1)
            around = around.gather(2, at[..., None].expand(-1, -1, -1, local.shape[-1]))
            return self.head((around * weight[..., None]).sum(2))

    return Network(), {"points": torch.randn(2, 32, 3)}


# ---- generative ----


@network("generative", "dynamo")
def transformers_gpt2_with_past():
    """A decoding step: past keys and values are inputs, and outputs that are longer by one."""
    import torch
    import transformers

    config = transformers.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    config._attn_implementation = "eager"

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.GPT2LMHeadModel(config)

        def forward(self, input_ids, *past):
            cache = transformers.DynamicCache()
            for layer, (key, value) in enumerate(zip(past[::2], past[1::2], strict=True)):
                cache.update(key, value, layer)
            found = self.model(input_ids, past_key_values=cache, use_cache=True)
            after = [(layer.keys, layer.values) for layer in found.past_key_values.layers]
            return (found.logits, *(tensor for pair in after for tensor in pair))

    names = ["key_0", "value_0", "key_1", "value_1"]
    return Step(), {"input_ids": torch.randint(0, 99, (1, 1)), **{name: torch.randn(1, 4, 9, 8) for name in names}}


@network("generative", "dynamo")
def transformers_gpt2_lm():
    import transformers

    config = transformers.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    return of_transformers(config, "GPT2LMHeadModel", tokens(), "logits")


DIFFUSION = {"block_out_channels": (16, 32), "norm_num_groups": 8, "layers_per_block": 1}


@network("generative", "dynamo")
def diffusers_unet():
    import diffusers
    import torch

    model = diffusers.UNet2DConditionModel(
        sample_size=16,
        **DIFFUSION,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=32,
        attention_head_dim=8,
    )
    inputs = {
        "sample": torch.randn(1, 4, 16, 16),
        "timestep": torch.tensor([17]),
        "encoder_hidden_states": torch.randn(1, 8, 32),
    }
    return outputs_of(model, "sample")(list(inputs)), inputs


@network("generative", "torchscript")
def diffusers_unet_of_pixels():
    import diffusers
    import torch

    model = diffusers.UNet2DModel(
        sample_size=16,
        **DIFFUSION,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=8,
    )
    inputs = {"sample": torch.randn(1, 3, 16, 16), "timestep": torch.tensor([17])}
    return outputs_of(model, "sample")(list(inputs)), inputs


def autoencoder():
    import diffusers

    return diffusers.AutoencoderKL(
        **DIFFUSION,
        down_block_types=("DownEncoderBlock2D", "DownEncoderBlock2D"),
        up_block_types=("UpDecoderBlock2D", "UpDecoderBlock2D"),
        latent_channels=4,
    )


@network("generative", "torchscript")
def diffusers_vae_decoder():
    import torch

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = autoencoder()

        def forward(self, latent):
            return self.model.decode(latent).sample

    return Decoder(), {"latent": torch.randn(1, 4, 8, 8)}


@network("generative", "dynamo")
def diffusers_transformer():
    import diffusers
    import torch

    model = diffusers.DiTTransformer2DModel(
        num_attention_heads=4,
        attention_head_dim=8,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        sample_size=8,
        patch_size=2,
    )
    inputs = {
        "hidden_states": torch.randn(1, 4, 8, 8),
        "timestep": torch.tensor([17]),
        "class_labels": torch.tensor([3]),
    }
    return outputs_of(model, "sample")(list(inputs)), inputs


@network("generative", "torchscript")
def transformers_swin2sr():
    import transformers

    config = transformers.Swin2SRConfig(
        image_size=16, patch_size=1, embed_dim=16, depths=[2, 2], num_heads=[2, 2], window_size=4, upscale=2
    )
    return of_transformers(config, "Swin2SRForImageSuperResolution", image(16), "reconstruction")


@network("generative", "dynamo")
def torch_vq_vae():
    """Replaces each pixel by the nearest vector of a table, then runs the decoder."""
    import torch
    from torch import nn

    class VqVae(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 8, 4, 2, 1))
            self.table = nn.Embedding(32, 8)
            self.decode = nn.Sequential(
                nn.ConvTranspose2d(8, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Sigmoid()
            )

        def forward(self, picture):
            z = self.encode(picture * 6 - 3).permute(0, 2, 3, 1)
            code = torch.cdist(z.flatten(0, 2), self.table.weight).argmin(1)
            vector = self.table(code).view(z.shape).permute(0, 3, 1, 2)
            return self.decode(vector), code

    return VqVae(), {"picture": torch.rand(2, 3, 32, 32)}


@network("generative", "torchscript")
def torch_style_generator():
    """StyleGAN 2: kernels modulated by the style and normalized again, one group of a convolution for each sample."""
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import nn

    class Modulated(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.weight, self.style = nn.Parameter(torch.randn(b, a, 3, 3)), nn.Linear(16, a)

        def forward(self, x, w):
            kernel = self.weight[None] * (self.style(w) + 1)[:, None, :, None, None]
            kernel = kernel * (kernel.square().sum((2, 3, 4), keepdim=True) + 1e-8).rsqrt()
            batch, a, rows, columns = x.shape
            x = F.conv2d(x.reshape(1, batch * a, rows, columns), kernel.flatten(0, 1), padding=1, groups=batch)
            return F.leaky_relu(x.view(batch, -1, rows, columns), 0.2)

    class Generator(nn.Module):
        def __init__(self):
            super().__init__()
            self.map = nn.Sequential(nn.Linear(16, 16), nn.LeakyReLU(0.2), nn.Linear(16, 16))
            self.start = nn.Parameter(torch.randn(1, 24, 4, 4))
            self.layers = nn.ModuleList([Modulated(24, 24), Modulated(24, 16), Modulated(16, 8)])
            self.color = nn.Conv2d(8, 3, 1)

        def forward(self, latent):
            w = self.map(latent * (latent.square().mean(1, keepdim=True) + 1e-8).rsqrt())
            x = self.start.expand(latent.shape[0], -1, -1, -1)
            for layer in self.layers:
                x = layer(F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False), w)
            return self.color(x).tanh()

    return Generator(), {"latent": torch.randn(2, 16)}


@network("generative", "dynamo")
def torch_normalizing_flow():
    """Glow, backwards: permutations, inverses of matrices, affine couplings, and the logarithm of the volume."""
    import torch
    from torch import nn

    class Coupling(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 8))
            matrix = torch.linalg.qr(torch.randn(8, 8)).Q
            self.register_buffer("inverse", torch.inverse(matrix))
            self.register_buffer("log_volume", torch.linalg.slogdet(matrix).logabsdet)

        def forward(self, z, volume):
            a, b = z.chunk(2, 1)
            shift, scale = self.net(a).chunk(2, 1)
            scale = torch.sigmoid(scale + 2)
            volume = volume - scale.log().sum(1) - self.log_volume
            return torch.cat([a, (b - shift) / scale], 1) @ self.inverse, volume

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Coupling() for _ in range(3))

        def forward(self, z):
            volume = torch.zeros(z.shape[0])
            for layer in self.layers:
                z, volume = layer(z.flip(1), volume)
            return z, volume

    return Flow(), {"z": torch.randn(4, 8)}


# ---- video and images ----


@network("image", "dynamo")
def transformers_videomae():
    import torch
    import transformers

    config = transformers.VideoMAEConfig(
        **{k: TEXT[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")},
        image_size=32,
        patch_size=8,
        num_frames=4,
    )
    inputs = {"pixel_values": torch.rand(1, 4, 3, 32, 32)}
    return of_transformers(config, "VideoMAEForVideoClassification", inputs, "logits")


@network("image", "torchscript")
def transformers_superpoint():
    """Key points with scores above a threshold, and their descriptors from the feature map."""
    import transformers
    from transformers.models.superpoint import modeling_superpoint

    # The exporter writes max_pool2d of three axes, without a batch, as a MaxPool that is invalid in ONNX.
    suppress = modeling_superpoint.simple_nms
    modeling_superpoint.simple_nms = lambda scores, radius: suppress(scores[None], radius)[0]
    config = transformers.SuperPointConfig(
        encoder_hidden_sizes=[16, 16, 24, 24],
        decoder_hidden_size=32,
        descriptor_decoder_dim=32,
        keypoint_threshold=0.015,
        max_keypoints=20,
        border_removal_distance=2,
    )
    return of_transformers(
        config, "SuperPointForKeypointDetection", image(64), "keypoints", "scores", "descriptors", "mask"
    )
