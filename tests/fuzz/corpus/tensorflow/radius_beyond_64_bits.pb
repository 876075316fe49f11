
:
xPlaceholder*
dtype0*
shape:
'
yLRNx*
depth_radius
ÿÿÿÿÿÿÿÿ