class KNNShapleyValuer: pass
