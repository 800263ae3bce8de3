function pads = window_pads(pads, sizes, kernel, stride, dilation)
% What is added before all dimensions and after them; 'same_upper' and 'same_lower' say that it follows from sizes.
if ischar(pads)
    span = (kernel - 1) .* dilation + 1;
    total = max((ceil(sizes ./ stride) - 1) .* stride + span - sizes, 0);
    small = floor(total / 2);
    if strcmp(pads, 'same_upper')
        pads = [small, total - small];
    else
        pads = [total - small, small];
    end
end
end
