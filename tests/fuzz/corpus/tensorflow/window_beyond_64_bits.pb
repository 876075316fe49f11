
B
xPlaceholder*
dtype0*#
shape:
ÿÿÿÿÿÿÿÿ
R
yMaxPoolx*
ksize
€€€€€€€€*
strides
*
paddingSAME