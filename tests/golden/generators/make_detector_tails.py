# make_detector_tails.py - exports the last stages of detectors, whose results have a fixed number of places.
"""Writes tests/golden/detectors/NAME.onnx and NAME.npz: inputs (as in:NAME) and the results of PyTorch or TensorFlow (as
out:NAME), for the test of the fusion of suppressions. The exports of PyTorch have the nodes that Ultralytics writes with
nms=True: for each picture a mask of the scores, torchvision's nms of boxes that are moved apart by their class, and a
padding. Those of TensorFlow have the nodes that tf2onnx writes for tf.image's suppressions.

Made with (Python 3.11): torch==2.8.0 torchvision==0.23.0 tensorflow-cpu==2.19.1 tf2onnx==1.17.0 onnx==1.18.0
Run: python tests/golden/generators/make_detector_tails.py [--out tests/golden/detectors]
"""

import argparse
import pathlib

import numpy as np
import tensorflow as tf
import tf2onnx
import torch
from torchvision.ops import nms

CLASSES, PLACES, BOXES, SIZE = 3, 20, 60, 64


class PictureByPicture(torch.nn.Module):
    """Suppresses the boxes of each picture by itself."""

    def __init__(self, further=0):
        super().__init__()
        self.further = further

    def forward(self, predictions):
        rows = predictions.transpose(1, 2)
        boxes, scores, further = rows.split([4, CLASSES, self.further], dim=2)
        scores, classes = scores.max(dim=-1)
        results = torch.zeros(rows.shape[0], PLACES, 6 + self.further)
        for i in range(rows.shape[0]):
            likely = scores[i] > 0.25
            box, score, label, more = boxes[i][likely], scores[i][likely], classes[i][likely], further[i][likely]
            step = label.view(label.shape[0], 1).expand(label.shape[0], 4)
            compared = (box / SIZE) * (1 / CLASSES) + step * (1 / CLASSES)
            keep = nms(compared, score, 0.45)[:PLACES]
            found = [box[keep], score[keep].view(-1, 1), label[keep].view(-1, 1).to(results.dtype), more[keep]]
            rows_found = torch.cat(found, dim=-1)
            results[i] = torch.nn.functional.pad(rows_found, (0, 0, 0, PLACES - rows_found.shape[0]))
        return results


def predictions(items, further, seed):
    """Returns boxes of which many overlap. The last picture has few candidates."""
    random = np.random.default_rng(seed)
    low = random.uniform(0, SIZE, (items, 2, BOXES))
    values = [low, low + random.uniform(2, SIZE / 2, (items, 2, BOXES)), random.uniform(0, 1, (items, CLASSES, BOXES))]
    values[2][-1] *= 0.28
    values.append(random.normal(size=(items, further, BOXES)))
    return np.concatenate(values, axis=1).astype(np.float32)


def export_pytorch(out, name, module, items):
    given = torch.from_numpy(predictions(items, module.further, len(name)))
    torch.onnx.export(module.eval(), (given,), out / f"{name}.onnx", input_names=["predictions"],
                      output_names=["detections"], opset_version=17, dynamo=False)  # fmt: skip
    with torch.no_grad():
        result = module(given)
    assert 0 < (result[-1, :, 4] > 0).sum() < PLACES
    np.savez_compressed(out / f"{name}.npz", **{"in:predictions": given.numpy(), "out:detections": result.numpy()})


def padded(boxes, scores):
    places, count = tf.raw_ops.NonMaxSuppressionV4(
        boxes=boxes, scores=scores, max_output_size=PLACES, iou_threshold=0.4, score_threshold=0.25,
        pad_to_max_output_size=True,
    )  # fmt: skip
    return tf.gather(boxes, places, name="found_boxes"), tf.gather(scores, places, name="found_scores"), count


def combined(boxes, scores):
    return tf.image.combined_non_max_suppression(boxes[:, :, None], scores, 6, 12, 0.4, 0.25, clip_boxes=True)


def combined_with_few_places(boxes, scores):
    """More places are padded than all classes have."""
    return tf.image.combined_non_max_suppression(boxes[:, :, None], scores, 3, 12, 0.4, 0.25, clip_boxes=False)


def combined_per_class(boxes, scores):
    return tf.image.combined_non_max_suppression(boxes[:, :, None], scores, 3, 12, 0.4, 0.25, pad_per_class=True)


def export_tensorflow(out, name, function, shapes, is_dynamic=False):
    random = np.random.default_rng(len(name))
    low = random.uniform(0, 1, (*shapes[0][:-1], 2))
    boxes = np.concatenate([low, low + random.uniform(0.1, 0.5, low.shape)], axis=-1)
    scores = random.uniform(0, 1, shapes[1])
    if scores.ndim > 1:
        scores[-1] *= 0.252  # Few scores of the last item are above the threshold.
    given = {"boxes": boxes.astype(np.float32), "scores": scores.astype(np.float32)}
    sizes = {key: (None, *array.shape[1:]) if is_dynamic else array.shape for key, array in given.items()}
    signature = [tf.TensorSpec(size, tf.float32, name=key) for key, size in sizes.items()]
    model, _ = tf2onnx.convert.from_function(
        tf.function(function, input_signature=signature), signature, opset=13, output_path=str(out / f"{name}.onnx")
    )
    results = function(*given.values())
    results = [results] if isinstance(results, tf.Tensor) else list(results)
    names = [value.name for value in model.graph.output]
    arrays = {f"in:{key}": array for key, array in given.items()}
    arrays |= {f"out:{key}": result.numpy() for key, result in zip(names, results, strict=True)}
    np.savez_compressed(out / f"{name}.npz", **arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).parents[3]
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests" / "golden" / "detectors")
    out = parser.parse_args().out
    export_pytorch(out, "torch_one_picture", PictureByPicture(), 1)
    export_pytorch(out, "torch_two_pictures", PictureByPicture(further=5), 2)
    export_tensorflow(out, "tf2onnx_padded", padded, [(BOXES, 4), (BOXES,)])
    shapes = [(3, BOXES, 4), (3, BOXES, CLASSES)]
    export_tensorflow(out, "tf2onnx_combined", combined, shapes, is_dynamic=True)
    export_tensorflow(out, "tf2onnx_combined_few", combined_with_few_places, shapes, is_dynamic=True)
    export_tensorflow(out, "tf2onnx_combined_per_class", combined_per_class, shapes)


if __name__ == "__main__":
    main()
