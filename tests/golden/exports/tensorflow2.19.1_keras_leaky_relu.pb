
C
xPlaceholder*
dtype0*$
shape:ÿÿÿÿÿÿÿÿÿ
B
leaky_re_lu_1_1/LeakyRelu	LeakyRelux*
T0*
alpha%š™™>
1
yIdentityleaky_re_lu_1_1/LeakyRelu*
T0
 
IdentityIdentityy*
T0"Ñ