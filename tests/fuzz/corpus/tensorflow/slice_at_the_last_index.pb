
.
xPlaceholder*
dtype0*
shape:
7
bConst*
dtype0	*
valueB	R	ÿÿÿÿÿÿÿÿ
/
sConst*
dtype0	*
valueB	R
5
yStridedSlicexbbs*
shrink_axis_mask